//! Answers of the password plug-ins.

use sha1::{Digest, Sha1};

use super::handshake::NONCE_BYTES;

/// Name of the plug-in of MySQL 4.1 to 5.7 and MariaDB.
pub const NATIVE_PASSWORD: &str = "mysql_native_password";

/// What a client answers under mysql_native_password:
/// SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))); nothing for an empty password.
pub fn native_password(password: &[u8], nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let stage1 = Sha1::digest(password);
    let stage2 = Sha1::digest(stage1);
    let mask = Sha1::new().chain_update(nonce).chain_update(stage2).finalize();
    stage1.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_knows_the_double_hash_accepts_the_answer() {
        let nonce = *b"abcdefghijklmnopqrst";
        let answer = native_password(b"secret", &nonce);
        // The server's way round: it keeps SHA1(SHA1(password)) only.
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mask = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
        let stage1: Vec<u8> = answer.iter().zip(mask).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(stage1), stored);
        assert!(native_password(b"", &nonce).is_empty());
    }
}
