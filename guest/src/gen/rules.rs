// Generated from spec/rules.json.

pub const LINK_VERSION: usize = 1;
pub const LINK_FRAME_BYTES: usize = 1048576;
pub const LINK_WINDOW_BYTES: usize = 1048576;
pub const PATH_MAX_BYTES: usize = 4096;
pub const PATH_MAX_SEGMENT_BYTES: usize = 255;
