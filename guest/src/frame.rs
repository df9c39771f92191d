//! Frames of the link (spec/link.md): a header of twelve bytes, then the payload.
