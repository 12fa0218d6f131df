//! A process that is the server and nothing else.

use std::fs;
use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::options::{Options, USAGE};
use crate::server::Server;

/// Serves as the words of a command line say, until it is asked to end. The process's exit status.
pub fn serve(words: Vec<String>) -> u8 {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{USAGE}");
        return 0;
    }
    let started = Options::parse(words).and_then(|options| {
        let stays = options.stays;
        Server::start(options).map(|server| (server, stays))
    });
    let (server, stays) = match started {
        Ok(started) => started,
        Err(sentence) => {
            eprintln!("fakeserver: {sentence}");
            return 2;
        }
    };
    println!("listening on {}", server.address());
    let _ = io::stdout().flush();
    wait(&server, stays);
    if let Some(socket) = server.socket() {
        let _ = fs::remove_file(socket);
    }
    eprintln!("{}", server.summary());
    0
}

/// Until standard input closes, unless it stays, or a signal asks for the end.
fn wait(server: &Server, stays: bool) {
    let (end, ended) = mpsc::channel();
    if !stays {
        let end_of_input = end.clone();
        thread::spawn(move || {
            let _ = io::stdin().lock().read_to_end(&mut Vec::new());
            let _ = end_of_input.send(());
        });
    }
    let server = server.clone();
    match Signals::new([SIGTERM, SIGINT, SIGUSR1]) {
        Ok(mut signals) => {
            thread::spawn(move || {
                for signal in &mut signals {
                    if signal == SIGUSR1 {
                        eprintln!("{}", server.summary());
                    } else {
                        let _ = end.send(());
                    }
                }
            });
        }
        Err(error) => eprintln!("fakeserver: signals are not handled: {error}"),
    }
    let _ = ended.recv();
}
