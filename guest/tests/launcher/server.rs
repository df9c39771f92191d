//! A daemon as small as a test needs: it speaks the launcher's side of ttRPC and does what the test says.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
};

use prost::Message;

use crate::terminal::{InvokeRequest, InvokeResponse, Open, invoke_request::Input, invoke_response::Output};

/// One call that the launcher has made.
pub struct Call {
    pub stream: UnixStream,
    pub open: Open,
}

pub fn listen(home: &Path) -> UnixListener {
    std::fs::create_dir_all(home.join("run")).unwrap();
    let socket = home.join("run/daemon.sock");
    let _ = std::fs::remove_file(&socket);
    UnixListener::bind(socket).unwrap()
}

/// Takes the next call; `None` from one that was only a knock at the door.
pub fn accept(listener: &UnixListener) -> Option<Call> {
    let (mut stream, _) = listener.accept().unwrap();
    let (kind, flags, request) = read_frame(&mut stream)?;
    assert_eq!((kind, flags), (1, 2), "a request whose input is open");
    // Field 1, the service, then field 2, the method.
    let text = String::from_utf8_lossy(&request);
    assert!(text.contains("caisson.terminal.v1.TerminalService") && text.contains("Invoke"));
    let Some(Input::Open(open)) = next(&mut stream) else { panic!("the first message is not open") };
    Some(Call { stream, open })
}

impl Call {
    pub fn send(&mut self, output: Output) {
        let message = InvokeResponse { output: Some(output) }.encode_to_vec();
        // The launcher may have gone, as some tests want.
        let _ = self.stream.write_all(&frame(3, 0, &message));
    }

    pub fn next(&mut self) -> Option<Input> {
        next(&mut self.stream)
    }

    /// Ends the call with a ttRPC response.
    pub fn respond(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(&frame(2, 0, bytes));
    }
}

fn next(stream: &mut UnixStream) -> Option<Input> {
    let (kind, _, payload) = read_frame(stream)?;
    assert_eq!(kind, 3);
    InvokeRequest::decode(&*payload).unwrap().input
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(&1_u32.to_be_bytes());
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(payload);
    bytes
}

fn read_frame(stream: &mut UnixStream) -> Option<(u8, u8, Vec<u8>)> {
    let mut header = [0; 10];
    stream.read_exact(&mut header).ok()?;
    let mut payload = vec![0; u32::from_be_bytes(header[..4].try_into().unwrap()) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((header[8], header[9], payload))
}
