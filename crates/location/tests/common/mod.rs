//! What the tests share.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use std::sync::Arc;

use location::{
    Binding, BindingParts, Disk, Flow, Location, Options, Recovery, Ticket, Transport, Wall,
    Writer, WriterOptions,
};

/// 2100-01-01: later than the clock that a writer's own thread reads, for which nothing must expire.
pub const NOW: Wall = Wall(4_102_444_800_000);

pub fn location() -> Arc<Location> {
    Arc::new(Location::new(Options {
        hash_key: [1, 2],
        waiting_bytes_max: 64 << 20,
        aor_count_max: 2_000_000,
    }))
}

/// A writer that makes a snapshot of anything.
pub const EAGER: WriterOptions = WriterOptions {
    segment_len_max: 2_000,
    journal_len_min: 5_000,
    commit_interval: std::time::Duration::ZERO,
};

pub fn open<D: Disk>(disk: D, options: WriterOptions) -> (Arc<Location>, Writer<D>, Recovery) {
    let location = location();
    let (writer, recovery) = Writer::open(Arc::clone(&location), disk, options, NOW).unwrap();
    (location, writer, recovery)
}

/// As long as what a common phone sends.
pub fn parts(contact: &str, cseq: u32) -> BindingParts<'_> {
    BindingParts {
        contact: contact.as_bytes(),
        params: b";+sip.instance=\"<urn:uuid:00000000-0000-1000-8000-000a95a0e128>\"",
        instance: b"<urn:uuid:00000000-0000-1000-8000-000a95a0e128>",
        reg_id: 1,
        q: 700,
        call_id: b"0a5f8c3e92d14b7ba6c1e83d",
        cseq,
        expires: NOW.after_s(3600),
        flow: Flow {
            transport: Transport::Tcp,
            listener: 1,
            connection: 77,
            local: "192.0.2.1:5060".parse().unwrap(),
            peer: "198.51.100.7:49152".parse().unwrap(),
        },
        behind_nat: true,
        path: b"",
        user_agent: b"Phone/1.0.2",
    }
}

/// Sets the one binding of an address-of-record.
pub fn register(location: &Location, aor: &str, contact: &str, cseq: u32) -> Ticket {
    let set = |bindings: &mut location::Bindings<'_>| {
        bindings.clear();
        bindings.push(Binding::new(&parts(contact, cseq)));
    };
    location.update(aor.as_bytes(), NOW, set).unwrap().1
}

/// Contact and CSeq of each binding.
pub fn state(location: &Location, aor: &str) -> Vec<(String, u32)> {
    let read = |b: &Binding| {
        let parts = b.parts();
        (
            String::from_utf8_lossy(parts.contact).into_owned(),
            parts.cseq,
        )
    };
    location.read(aor.as_bytes(), NOW, |list| list.iter().map(read).collect())
}
