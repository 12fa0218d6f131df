//! The hot path's parsers, which a server's bytes reach first.

use dbdyno_engine::link::rehearsal::Rehearsal;
use dbdyno_engine::link::{Answer, Protocol};
use dbdyno_engine::program::Param;
use dbdyno_wire::mysql::capability;

use crate::{pieces, within_allowance};

/// Bits of the first byte: how the client asks.
const DEPRECATE_EOF: u8 = 1;
const PREPARED: u8 = 2;
const UNREAD: u8 = 4;
const EVERY_OTHER_COLUMN: u8 = 8;
/// PostgreSQL alone; MySQL's client has asked nothing then.
const PIPELINE: u8 = 16;

pub(crate) fn mysql(input: &[u8]) {
    compare(Protocol::MySql, input);
}

pub(crate) fn postgresql(input: &[u8]) {
    compare(Protocol::PostgreSql, input);
}

fn compare(protocol: Protocol, input: &[u8]) {
    let Some((&settings, bytes)) = input.split_first() else { return };
    let whole = conversation(protocol, settings, bytes.len(), [bytes].into_iter());
    let cut = conversation(protocol, settings, bytes.len(), pieces(settings, bytes));
    assert_eq!(whole, cut, "the answer depends on where the bytes were cut");
}

/// What a client understood that asks again as soon as it has an answer.
fn conversation<'a>(
    protocol: Protocol,
    settings: u8,
    total: usize,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Vec<(String, Vec<Vec<String>>)> {
    let capabilities = if settings & DEPRECATE_EOF != 0 { capability::DEPRECATE_EOF } else { 0 };
    let columns = match settings {
        bits if bits & UNREAD != 0 => 0,
        bits if bits & EVERY_OTHER_COLUMN != 0 => 0x5555_5555_5555_5555,
        _ => u64::MAX,
    };
    let mut client = Rehearsal::new(protocol, capabilities, columns);
    let mut said = Vec::new();
    ask(&mut client, settings);
    for piece in pieces {
        let mut fresh = piece;
        loop {
            let held = client.held() + fresh.len();
            let heard = within_allowance(total, || client.hear(fresh));
            fresh = &[];
            match heard {
                Ok(Answer::Pending) => break,
                Ok(answer) => {
                    assert!(client.held() < held, "{answer:?} out of no bytes");
                    let lost = matches!(answer, Answer::Lost(_));
                    said.push((format!("{answer:?} {}", client.in_transaction()), client.take_rows()));
                    if lost {
                        return said;
                    }
                    ask(&mut client, settings);
                }
                Err(error) => {
                    said.push((error.to_string(), client.take_rows()));
                    return said;
                }
            }
        }
    }
    said.push((format!("{} bytes held", client.held()), client.take_rows()));
    said
}

fn ask(client: &mut Rehearsal, settings: u8) {
    if settings & PIPELINE != 0 {
        client.pipeline(&[(1, "UPDATE t SET c = 1"), (2, "SELECT 1")]);
    } else if settings & PREPARED != 0 {
        client.statement(0, "SELECT ?", [Param::Int(1)].into_iter());
    } else {
        client.query("SELECT 1");
    }
}
