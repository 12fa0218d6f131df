//! SCRAM-SHA-256 as a client (RFC 5802, RFC 7677), with the salted password kept: its derivation costs
//! milliseconds, and ten thousand connections log in with the same one.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::Rng as _;
use rand::distributions::Alphanumeric;
use ring::{digest, hmac, pbkdf2};

/// The mechanism without channel binding.
pub(crate) const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
/// The mechanism with channel binding.
pub(crate) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";
/// Most iterations that a server may ask for: some tenths of a second.
const ITERATION_CEILING: u32 = 1_000_000;
const NONCE_CHARACTERS: usize = 24;

/// What is bound to the TLS channel.
pub(crate) enum Binding<'a> {
    /// No TLS.
    Unsupported,
    /// TLS, and the server offers no binding.
    NotOffered,
    /// Hash of the server's certificate (tls-server-end-point).
    Certificate(&'a [u8]),
}

/// Salt and number of iterations.
type Salt = (Vec<u8>, u32);

/// Salted passwords.
#[derive(Default)]
pub(crate) struct SaltedPasswords(Mutex<HashMap<Salt, [u8; 32]>>);

impl SaltedPasswords {
    /// Derived once; who asks meanwhile waits for it.
    fn get(&self, password: &str, salt: &[u8], iterations: NonZeroU32) -> [u8; 32] {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept.entry((salt.to_vec(), iterations.get())).or_insert_with(|| {
            // PostgreSQL takes a password that cannot be normalized as it is
            let normal = stringprep::saslprep(password);
            let normal = normal.as_deref().unwrap_or(password);
            let mut salted = [0; 32];
            pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, normal.as_bytes(), &mut salted);
            salted
        })
    }
}

/// An exchange under way.
pub(crate) struct Exchange {
    nonce: String,
    header: &'static str,
    bound: Vec<u8>,
    expected: Option<hmac::Tag>,
}

fn sign(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
}

impl Exchange {
    pub fn new(binding: &Binding<'_>) -> Self {
        let nonce =
            rand::thread_rng().sample_iter(Alphanumeric).take(NONCE_CHARACTERS).map(char::from).collect();
        Self::with_nonce(binding, nonce)
    }

    fn with_nonce(binding: &Binding<'_>, nonce: String) -> Self {
        let (header, bound) = match binding {
            Binding::Unsupported => ("n,,", Vec::new()),
            Binding::NotOffered => ("y,,", Vec::new()),
            Binding::Certificate(hash) => ("p=tls-server-end-point,,", hash.to_vec()),
        };
        Self { nonce, header, bound, expected: None }
    }

    /// The client's first message; the user is the one of the start-up message.
    pub fn first(&self) -> String {
        format!("{}n=,r={}", self.header, self.nonce)
    }

    /// The client's proof for the server's challenge. None: the challenge makes no sense.
    pub fn proof(&mut self, challenge: &[u8], password: &str, kept: &SaltedPasswords) -> Option<String> {
        let challenge = std::str::from_utf8(challenge).ok()?;
        let mut parts = challenge.split(',');
        let nonce = parts.next()?.strip_prefix("r=").filter(|nonce| nonce.starts_with(&self.nonce))?;
        let salt = STANDARD.decode(parts.next()?.strip_prefix("s=")?).ok()?;
        let iterations: NonZeroU32 = parts.next()?.strip_prefix("i=")?.parse().ok()?;
        if nonce.len() == self.nonce.len() || iterations.get() > ITERATION_CEILING {
            return None;
        }
        let salted = kept.get(password, &salt, iterations);
        let channel = STANDARD.encode([self.header.as_bytes(), &self.bound].concat());
        let bare = format!("c={channel},r={nonce}");
        let agreed = format!("n=,r={},{challenge},{bare}", self.nonce);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let signature = sign(stored_key.as_ref(), agreed.as_bytes());
        let proof: Vec<u8> = client_key.as_ref().iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        let server_key = sign(&salted, b"Server Key");
        self.expected = Some(sign(server_key.as_ref(), agreed.as_bytes()));
        Some(format!("{bare},p={}", STANDARD.encode(proof)))
    }

    /// Whether the server's last message proves that it knows the password.
    pub fn is_proved_by(&self, last: &[u8]) -> bool {
        let signature = last.strip_prefix(b"v=").and_then(|text| STANDARD.decode(text).ok());
        match (signature, &self.expected) {
            (Some(signature), Some(expected)) => signature == expected.as_ref(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3, whose user is in the start-up message here.
    #[test]
    fn the_proof_is_that_of_the_standards_example() {
        let mut exchange = Exchange::with_nonce(&Binding::Unsupported, "rOprNGfwEbeRWgbNEkqO".into());
        let challenge =
            b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let kept = SaltedPasswords::default();
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("a salt");
        let iterations = NonZeroU32::new(4096).expect("not 0");
        let salted = kept.get("pencil", &salt, iterations);
        let stored = digest::digest(&digest::SHA256, sign(&salted, b"Client Key").as_ref());
        // the standard's own proof is over a message with n=user; the keys under it are the same
        let agreed = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                      s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
                      c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let signature = sign(stored.as_ref(), agreed.as_bytes());
        let proof: Vec<u8> = sign(&salted, b"Client Key")
            .as_ref()
            .iter()
            .zip(signature.as_ref())
            .map(|(a, b)| a ^ b)
            .collect();
        assert_eq!(STANDARD.encode(proof), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");

        let answer = exchange.proof(challenge, "pencil", &kept).expect("a proof");
        assert!(answer.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p="));
        assert!(!exchange.is_proved_by(b"v=AAAA"), "a server that does not know the password");
        assert_eq!(kept.0.lock().expect("not poisoned").len(), 1, "derived once");
    }

    #[test]
    fn a_challenge_that_makes_no_sense_gets_no_proof() {
        let kept = SaltedPasswords::default();
        for challenge in
            ["", "r=abc", "r=other,s=AAAA,i=4096", "r=abcX,s=AAAA,i=0", "r=abcX,s=AAAA,i=4000000000"]
        {
            let mut exchange = Exchange::with_nonce(&Binding::NotOffered, "abc".into());
            assert_eq!(exchange.proof(challenge.as_bytes(), "p", &kept), None, "{challenge}");
        }
    }
}
