//! Answers of the password methods.

use md5::{Digest, Md5};

/// What a client answers under md5 authentication: "md5" and the hex digest of
/// (hex digest of password + user) + salt.
pub fn md5_password(user: &str, password: &str, salt: [u8; 4]) -> String {
    let stored = hex(&Md5::new().chain_update(password).chain_update(user).finalize());
    format!("md5{}", hex(&Md5::new().chain_update(stored).chain_update(salt).finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_manuals_formula() {
        // concat('md5', md5(concat(md5(concat('secret', 'alice')), 0x01020304))), computed by md5sum.
        assert_eq!(md5_password("alice", "secret", [1, 2, 3, 4]), "md598a0412b9c31436fc53776e863350083");
    }
}
