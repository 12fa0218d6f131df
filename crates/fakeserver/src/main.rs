//! `fakeserver`: see `--help`.

use std::env;
use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use fakeserver::{Options, Server, USAGE};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let server = match Options::parse(words).and_then(Server::start) {
        Ok(server) => server,
        Err(sentence) => {
            eprintln!("fakeserver: {sentence}");
            return ExitCode::from(2);
        }
    };
    println!("listening on {}", server.address());
    wait(&server);
    eprintln!("{}", server.summary());
    ExitCode::SUCCESS
}

/// Until standard input closes or a signal asks for the end.
fn wait(server: &Server) {
    let (end, ended) = mpsc::channel();
    let end_of_input = end.clone();
    thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = end_of_input.send(());
    });
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
