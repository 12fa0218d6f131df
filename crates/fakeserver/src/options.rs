//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::delay::{Delay, time_s};
use crate::script::Stall;

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// MySQL's.
    Mysql,
    /// PostgreSQL's.
    Postgresql,
}

/// What the server was asked to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// The protocol to speak.
    pub protocol: Protocol,
    /// The port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// A unix socket to listen on, too.
    pub socket: Option<PathBuf>,
    /// The version that the server claims to be.
    pub server_version: String,
    /// The password to ask for; None accepts anybody.
    pub password: Option<String>,
    /// PostgreSQL: ask for the password in clear text instead of md5.
    pub cleartext: bool,
    /// The script of answers and faults.
    pub script: Option<PathBuf>,
    /// Where executed statements are written, one JSON line each.
    pub record: Option<PathBuf>,
    /// How late every executed statement is answered, unless its rule says otherwise.
    pub delay: Option<Delay>,
    /// Seed of the delays that are drawn.
    pub seed: u64,
    /// How long before a late answer is due the server stops sleeping and polls.
    pub spin: Duration,
    /// When the whole server stands still, beside the script's own times.
    pub stalls: Vec<Stall>,
    /// Serve on when standard input closes.
    pub stays: bool,
    /// The real server to pass everything to.
    pub proxy: Option<String>,
}

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: fakeserver --protocol mysql|postgresql [OPTIONS]

A scripted server on 127.0.0.1 for tests and benchmarks. It prints `listening on 127.0.0.1:PORT` and runs until its
standard input closes or it gets SIGTERM. SIGUSR1 and its end print `statements N connections M` on
standard error.

  --port N               port to listen on (0: any free one)                       [0]
  --socket PATH          unix socket to listen on, too
  --server-version TEXT  version that it claims to be
  --password TEXT        password to ask for (mysql_native_password, md5); without it anybody may log in
  --cleartext            PostgreSQL: ask for the password in clear text
  --script FILE          JSON with answers and faults
  --record FILE          write each executed statement as {\"conn\":N,\"sql\":\"...\",\"values\":[...]}
  --delay DELAY          how late every statement is answered: 2ms, exponential:2ms (mean),
                         lognormal:2ms,0.5 (median, sigma of the logarithm), normal:2ms,300us, uniform:1ms,3ms
  --seed N               seed of the delays that are drawn                         [1]
  --spin TIME            poll for so long before a late answer is due: exact to a microsecond where the
                         machine's timers wake late (virtual ones do), for as much CPU time
  --stall AT:FOR         stand still AT after the first statement, FOR so long: 5s:1s; repeatable
  --stay                 go on when standard input closes
  --proxy HOST:PORT      pass everything to a real server (no TLS), record its statements
";

impl Options {
    /// The options of a protocol on a free port, everything else left out.
    pub fn new(protocol: Protocol) -> Self {
        let server_version = match protocol {
            Protocol::Mysql => "8.0.36-fakeserver",
            Protocol::Postgresql => "18.0",
        };
        Self {
            protocol,
            port: 0,
            server_version: server_version.to_owned(),
            password: None,
            cleartext: false,
            socket: None,
            script: None,
            delay: None,
            seed: 1,
            spin: Duration::ZERO,
            stalls: Vec::new(),
            stays: false,
            record: None,
            proxy: None,
        }
    }

    /// Reads the words after the program's name. Error: one sentence.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let words: Vec<String> = words.into_iter().collect();
        let mut pairs = Vec::new();
        let (mut cleartext, mut stays) = (false, false);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word == "--cleartext" {
                cleartext = true;
                continue;
            }
            if word == "--stay" {
                stays = true;
                continue;
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => {
                    let value = rest.next().ok_or_else(|| format!("{word} needs a value"))?;
                    (word.clone(), value.clone())
                }
            };
            pairs.push((name, value));
        }
        let protocol =
            match pairs.iter().find(|(name, _)| name == "--protocol").map(|(_, value)| value.as_str()) {
                Some("mysql") => Protocol::Mysql,
                Some("postgresql") => Protocol::Postgresql,
                Some(other) => return Err(format!("--protocol must be mysql or postgresql, not {other}")),
                None => return Err("--protocol mysql or --protocol postgresql is needed".to_owned()),
            };
        let mut options = Self { cleartext, stays, ..Self::new(protocol) };
        for (name, value) in pairs {
            match name.as_str() {
                "--protocol" => {}
                "--port" => {
                    options.port =
                        value.parse().map_err(|_| format!("--port must be 0 to 65535, not {value}"))?;
                }
                "--socket" => options.socket = Some(PathBuf::from(value)),
                "--delay" => options.delay = Some(Delay::parse(&value)?),
                "--seed" => {
                    options.seed =
                        value.parse().map_err(|_| format!("--seed must be a number, not {value}"))?;
                }
                "--spin" => {
                    let seconds = time_s(&value)
                        .ok_or_else(|| format!("--spin must be a time, for example 100us, not {value}"))?;
                    options.spin = Duration::from_secs_f64(seconds);
                }
                "--stall" => {
                    let times =
                        value.split_once(':').and_then(|(at, long)| Some((time_s(at)?, time_s(long)?)));
                    let (at_s, for_s) =
                        times.ok_or_else(|| format!("--stall is AT:FOR, for example 5s:1s, not {value}"))?;
                    options.stalls.push(Stall::new(at_s, for_s)?);
                }
                "--server-version" => options.server_version = value,
                "--password" => options.password = Some(value),
                "--script" => options.script = Some(PathBuf::from(value)),
                "--record" => options.record = Some(PathBuf::from(value)),
                "--proxy" => options.proxy = Some(value),
                other => return Err(format!("unknown option {other}; --help lists them")),
            }
        }
        Ok(options)
    }
}
