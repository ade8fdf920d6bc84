//! Times the parser and the writers: `cargo bench -p sip-wire`.

mod cases;

use cases::{CASES, INVITE, State};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sip-wire");
    group.throughput(Throughput::Bytes(INVITE.len() as u64));
    for (name, work) in CASES {
        let mut state = State::new();
        group.bench_function(name, |bencher| bencher.iter(|| work(&mut state)));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
