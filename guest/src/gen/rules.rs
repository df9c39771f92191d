// Generated from spec/rules.json.

pub const LINK_VERSION: usize = 1;
pub const LINK_FRAME_BYTES: usize = 1048576;
pub const LINK_WINDOW_BYTES: usize = 1048576;
pub const LINK_CONNECTION_WINDOW_BYTES: usize = 262144;
pub const LINK_CONNECTIONS: usize = 1024;
pub const LINK_CONNECTIONS_QUEUED_BYTES: usize = 67108864;
pub const NETWORK_PROXY_PORT: usize = 14128;
pub const NETWORK_TRANSPARENT_PORT: usize = 14129;
pub const NETWORK_DNS_NAMES: usize = 16384;
pub const PATH_MAX_BYTES: usize = 4096;
pub const PATH_MAX_SEGMENT_BYTES: usize = 255;
