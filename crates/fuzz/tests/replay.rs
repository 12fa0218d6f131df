//! The corpus again, for every run of the tests: what was recorded, what was found, and their beginnings.

use std::time::{Duration, Instant};

use dbdyno_engine::link::rehearsal::Rehearsal;
use dbdyno_engine::link::{Answer, Protocol};
use dbdyno_fuzz::{TARGETS, allocation, corpus};
use dbdyno_wire::MESSAGE_CEILING_BYTES;
use dbdyno_wire::mysql::capability;

/// A target's share of the tests' time; what is left over then is the soak's.
const SHARE: Duration = Duration::from_secs(2);

fn replay(target: &str) {
    let run = TARGETS.iter().find(|(name, _)| *name == target).unwrap().1;
    let inputs = corpus::inputs(target);
    assert!(inputs.len() >= 150, "the corpus of {target} is not here");
    let began = Instant::now();
    inputs.iter().for_each(|input| run(input));
    // every beginning of an input, the short inputs' first
    let mut inputs = inputs;
    inputs.sort_by_key(Vec::len);
    for input in &inputs {
        for length in 0..input.len() {
            run(&input[..length]);
            if began.elapsed() > SHARE {
                return;
            }
        }
    }
}

#[test]
fn hostile_mysql_servers_do_no_harm() {
    replay("wire_mysql");
}

#[test]
fn hostile_mysql_clients_do_no_harm() {
    replay("wire_mysql_client");
}

#[test]
fn hostile_postgresql_servers_do_no_harm() {
    replay("wire_postgresql");
}

#[test]
fn hostile_postgresql_clients_do_no_harm() {
    replay("wire_postgresql_client");
}

#[test]
fn hostile_mysql_servers_do_the_hot_path_no_harm() {
    replay("engine_mysql");
}

#[test]
fn hostile_postgresql_servers_do_the_hot_path_no_harm() {
    replay("engine_postgresql");
}

/// Packets of the most that one holds, then a shorter one: a payload of `length` bytes that begins with `head`.
fn chunked(head: &[u8], length: usize) -> Vec<u8> {
    let mut payload = head.to_vec();
    payload.resize(length, b'x');
    let mut out = Vec::with_capacity(length + 64);
    let mut chunks: Vec<&[u8]> = payload.chunks(0xFF_FFFF).collect();
    if length % 0xFF_FFFF == 0 {
        chunks.push(&[]);
    }
    for (sequence, chunk) in chunks.into_iter().enumerate() {
        out.extend(&(chunk.len() as u32).to_le_bytes()[..3]);
        out.push(sequence as u8);
        out.extend(chunk);
    }
    out
}

/// A result of one text column: its head, a row of `length` bytes, its end.
fn result_with_row(length: usize) -> Vec<u8> {
    let definition = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\xff\xff\xff\xfc\0\0\0\0\0";
    let mut out = b"\x01\0\0\x01\x01".to_vec();
    out.extend([definition.len() as u8, 0, 0, 2]);
    out.extend(definition);
    let head = if length - 4 <= 0xFF_FFFF {
        [&[0xFD], &(length as u32 - 4).to_le_bytes()[..3]].concat()
    } else {
        [&[0xFE][..], &(length as u64 - 9).to_le_bytes()].concat()
    };
    out.extend(chunked(&head, length));
    out.extend(b"\x07\0\0\x04\xfe\0\0\x02\0\0\0");
    out
}

#[test]
fn a_row_of_several_packets_is_one_row() {
    for length in [0xFF_FFFF - 1, 0xFF_FFFF, 0xFF_FFFF + 1, 2 * 0xFF_FFFF, 40 << 20] {
        let bytes = result_with_row(length);
        for piece in [usize::MAX, 1 << 16] {
            // nothing of the row is read: as much is framed as a connection may hold
            let mut client = Rehearsal::new(Protocol::MySql, capability::DEPRECATE_EOF, 0);
            client.query("SELECT c FROM t");
            let (answer, peak) = allocation::peak_of(|| {
                let mut answer = Answer::Pending;
                bytes.chunks(piece.min(bytes.len())).for_each(|piece| answer = client.hear(piece).unwrap());
                answer
            });
            assert_eq!(answer, Answer::Done { rows: 1, matched: 0 }, "{length}");
            assert!(peak <= 4 * MESSAGE_CEILING_BYTES, "a row of {length} bytes made it hold {peak}");
        }
    }
}

#[test]
fn a_row_beyond_the_ceiling_is_refused_before_it_is_held() {
    // five whole chunks are more than 64 MiB
    let bytes = chunked(&[0xFE], 5 * 0xFF_FFFF);
    let mut client = Rehearsal::new(Protocol::MySql, capability::DEPRECATE_EOF, 0);
    client.query("SELECT c FROM t");
    let (error, peak) =
        allocation::peak_of(|| bytes.chunks(1 << 16).find_map(|piece| client.hear(piece).err()));
    assert!(error.is_some_and(|error| error.to_string().contains("above the ceiling")));
    assert!(peak <= 4 * MESSAGE_CEILING_BYTES, "{peak}");
    let mut client = Rehearsal::new(Protocol::PostgreSql, 0, 0);
    client.query("SELECT c FROM t");
    let (heard, peak) = allocation::peak_of(|| client.hear(b"D\x7f\xff\xff\xff"));
    assert!(heard.is_err() && peak < 1 << 16, "{heard:?} {peak}");
}
