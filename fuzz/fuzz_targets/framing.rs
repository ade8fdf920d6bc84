//! A stream gives the same messages however it is split, and every message framed is the one that is indexed.
//! The first bytes of the input choose the split, up to a zero.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sip_wire::{Frame, Framer, Framing, Index, Limits};

fuzz_target!(|input: &[u8]| {
    let split = input.iter().position(|&b| b == 0).unwrap_or(0);
    let (pieces, stream) = input.split_at(split);
    let stream = stream.strip_prefix(b"\0").unwrap_or(stream);
    let limits = Limits {
        head_bytes_max: 2048,
        message_bytes_max: 4096,
        ..Limits::default()
    };
    let whole = frames(stream, &[], &limits);
    assert_eq!(whole, frames(stream, pieces, &limits));

    let mut index = Index::new();
    let mut at = 0;
    for frame in whole {
        let (Frame::Blank { len, .. } | Frame::Message { len }) = frame else {
            break;
        };
        let bytes = &stream[at..at + len];
        at += len;
        if matches!(frame, Frame::Message { .. })
            && index.parse(bytes, Framing::Stream, &limits).is_ok()
        {
            assert_eq!(index.message(bytes).bytes(), bytes);
        }
    }
});

/// The frames of `stream`, whose first bytes arrive in pieces of these lengths and the rest at once.
fn frames(stream: &[u8], pieces: &[u8], limits: &Limits) -> Vec<Frame> {
    let mut framer = Framer::default();
    let mut frames = Vec::new();
    let (mut begin, mut end) = (0, 0);
    let pieces = pieces.iter().map(|&piece| usize::from(piece));
    for piece in pieces.chain([stream.len()]) {
        end = (end + piece).min(stream.len());
        loop {
            let frame = framer.next(&stream[begin..end], limits);
            match frame {
                Frame::Incomplete => break,
                Frame::Blank { len, .. } | Frame::Message { len } => begin += len,
                Frame::Broken(_) => {
                    frames.push(frame);
                    return frames;
                }
            }
            push(&mut frames, frame);
        }
    }
    frames
}

/// A ping in two halves is one ping.
fn push(frames: &mut Vec<Frame>, frame: Frame) {
    let halves = [
        Frame::Blank {
            len: 2,
            ping: false,
        },
        Frame::Blank { len: 2, ping: true },
    ];
    if frame == halves[1] && frames.last() == Some(&halves[0]) {
        frames.pop();
        frames.push(Frame::Blank { len: 4, ping: true });
    } else {
        frames.push(frame);
    }
}
