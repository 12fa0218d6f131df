//! Logging in to MySQL and its relatives (MySQL Internals Manual, "Connection Phase").

use bytes::BytesMut;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use dbdyno_wire::mysql::{
    AuthSwitch, ErrPacket, Handshake, HandshakeResponse, Packet, auth, capability, collation, parse, write,
};
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};
use sha2::{Digest, Sha256, Sha512};

use super::conversation::Conversation;
use super::{Logins, Trouble, tls};
use crate::link::{Endpoint, Session, TlsMode};

const LOGIN_CEILING_BYTES: usize = 1 << 20;
const CACHING_SHA2: &str = "caching_sha2_password";
const ED25519: &str = "client_ed25519";
const CLEAR: &str = "mysql_clear_password";
/// Answers of the caching_sha2_password server.
const FAST_OK: u8 = 3;
const FULL_AUTHENTICATION: u8 = 4;
const REQUEST_PUBLIC_KEY: u8 = 2;

const WANTED: u32 = capability::LONG_PASSWORD
    | capability::FOUND_ROWS
    | capability::LONG_FLAG
    | capability::CONNECT_WITH_DB
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::MULTI_RESULTS
    | capability::PS_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC_DATA
    | capability::DEPRECATE_EOF;

fn packet(talk: &mut Conversation) -> Result<Packet, Trouble> {
    loop {
        if let Some(packet) = parse(&mut talk.input, LOGIN_CEILING_BYTES)? {
            if packet.payload.first() == Some(&0xFF) {
                let error = ErrPacket::parse(&packet.payload)?;
                return Err(Trouble::Refused { code: error.code.to_string(), message: error.message });
            }
            return Ok(packet);
        }
        talk.fill()?;
    }
}

fn send(talk: &mut Conversation, sequence: u8, payload: &[u8]) -> Result<(), Trouble> {
    let (mut out, mut sequence) = (BytesMut::new(), sequence);
    write(&mut out, &mut sequence, payload);
    talk.send(&out)
}

pub(crate) fn log_in(
    logins: &Logins,
    endpoint: &Endpoint,
    talk: &mut Conversation,
) -> Result<Session, Trouble> {
    let login = &logins.login;
    let greeting = packet(talk)?;
    let hello = Handshake::parse(&greeting.payload)?;
    let mut capabilities = WANTED & (hello.capabilities | capability::FOUND_ROWS);
    if login.database.is_empty() {
        capabilities &= !capability::CONNECT_WITH_DB;
    }
    let mut sequence = greeting.sequence.wrapping_add(1);
    let offered = hello.capabilities & capability::SSL != 0;
    let wanted = login.tls != TlsMode::Disable && !(login.tls == TlsMode::Prefer && talk.is_unix());
    if wanted && !offered && login.tls != TlsMode::Prefer {
        return Err(Trouble::Other("the server offers no TLS, and this TLS mode asks for it".into()));
    }
    if wanted && offered {
        capabilities |= capability::SSL;
        let mut request = capabilities.to_le_bytes().to_vec();
        request.extend((1u32 << 26).to_le_bytes());
        request.push(collation::UTF8MB4_GENERAL_CI);
        request.extend([0; 23]);
        send(talk, sequence, &request)?;
        sequence = sequence.wrapping_add(1);
        talk.start_tls(logins.tls()?, tls::name(endpoint)?)?;
    }
    let password = login.password.as_ref().map_or("", |secret| secret.reveal());
    let mut plugin =
        if hello.plugin.is_empty() { auth::NATIVE_PASSWORD.to_owned() } else { hello.plugin.clone() };
    if !matches!(plugin.as_str(), auth::NATIVE_PASSWORD | CACHING_SHA2 | ED25519) {
        auth::NATIVE_PASSWORD.clone_into(&mut plugin); // the server switches to what the account has
    }
    let mut nonce = hello.nonce.to_vec();
    let response = HandshakeResponse {
        capabilities,
        max_packet: 1 << 26,
        collation: collation::UTF8MB4_GENERAL_CI,
        user: login.user.clone(),
        auth: answer(&plugin, password, &nonce, talk)?.into(),
        database: (!login.database.is_empty()).then(|| login.database.clone()),
        plugin: Some(plugin.clone()),
        attributes: vec![("program_name".into(), "dbdyno".into())],
    };
    send(talk, sequence, &response.encode())?;
    loop {
        // should the server have another RSA key by now, the next login asks for it
        let reply = packet(talk).inspect_err(|_| logins.forget_rsa_key(&endpoint.to_string()))?;
        let sequence = reply.sequence.wrapping_add(1);
        match reply.payload.first() {
            Some(0x00) => break,
            Some(0xFE) => {
                let switch = AuthSwitch::parse(&reply.payload)?;
                plugin = switch.plugin;
                nonce = switch.nonce.to_vec();
                let payload = answer(&plugin, password, &nonce, talk)?;
                send(talk, sequence, &payload)?;
            }
            Some(0x01) => {
                let question = Question { plugin: &plugin, data: &reply.payload[1..], sequence };
                more(logins, endpoint, password, &nonce, &question, talk)?;
            }
            _ => return Err(Trouble::Other("the server's answer to the login makes no sense".into())),
        }
    }
    Ok(Session {
        capabilities,
        server_version: hello.server_version,
        connection_id: u64::from(hello.connection_id),
        cancel_key: Vec::new(),
        tls: talk.is_tls(),
    })
}

/// What a plug-in sends for the nonce.
fn answer(plugin: &str, password: &str, nonce: &[u8], talk: &Conversation) -> Result<Vec<u8>, Trouble> {
    let bytes = password.as_bytes();
    match plugin {
        auth::NATIVE_PASSWORD => {
            let nonce: &[u8; 20] = nonce
                .first_chunk()
                .ok_or_else(|| Trouble::Other("the server's nonce is too short".into()))?;
            Ok(auth::native_password(bytes, nonce))
        }
        CACHING_SHA2 if password.is_empty() => Ok(Vec::new()),
        CACHING_SHA2 => {
            // SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)
            let stage1 = Sha256::digest(bytes);
            let stage2 = Sha256::digest(stage1);
            let mask = Sha256::new().chain_update(stage2).chain_update(nonce).finalize();
            Ok(stage1.iter().zip(mask).map(|(a, b)| a ^ b).collect())
        }
        ED25519 => Ok(ed25519(bytes, nonce)),
        CLEAR if talk.is_private() => Ok(zero_terminated(password)),
        CLEAR => Err(Trouble::Other(
            "the server wants the password in clear text; it is sent over TLS or a unix socket only".into(),
        )),
        other => Err(Trouble::Other(format!(
            "the server asks for the authentication plug-in {other:?}; known are {}, {CACHING_SHA2}, {ED25519}, {CLEAR}",
            auth::NATIVE_PASSWORD
        ))),
    }
}

fn zero_terminated(password: &str) -> Vec<u8> {
    let mut bytes = password.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// What the server asks after the first answer.
struct Question<'a> {
    plugin: &'a str,
    data: &'a [u8],
    /// Of the packet that answers it.
    sequence: u8,
}

/// The rest of caching_sha2_password: nothing, the password over a private connection, or under the server's
/// RSA key, which is asked for once in a run.
fn more(
    logins: &Logins,
    endpoint: &Endpoint,
    password: &str,
    nonce: &[u8],
    question: &Question<'_>,
    talk: &mut Conversation,
) -> Result<(), Trouble> {
    let sequence = question.sequence;
    match question.data {
        [FAST_OK] if question.plugin == CACHING_SHA2 => Ok(()),
        [FULL_AUTHENTICATION] if question.plugin == CACHING_SHA2 && talk.is_private() => {
            send(talk, sequence, &zero_terminated(password))
        }
        [FULL_AUTHENTICATION] if question.plugin == CACHING_SHA2 => {
            let masked: Vec<u8> =
                zero_terminated(password).iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
            let sealed = |key: &RsaPublicKey| {
                key.encrypt(&mut rand::rngs::OsRng, Oaep::new::<sha1::Sha1>(), &masked)
                    .map_err(|_| Trouble::Other("the password is too long for the server's RSA key".into()))
            };
            let place = endpoint.to_string();
            if let Some(key) = logins.rsa_key(&place) {
                return send(talk, sequence, &sealed(&key)?);
            }
            send(talk, sequence, &[REQUEST_PUBLIC_KEY])?;
            let reply = packet(talk)?;
            let pem = reply.payload.get(1..).and_then(|rest| std::str::from_utf8(rest).ok()).unwrap_or("");
            let key = RsaPublicKey::from_public_key_pem(pem.trim())
                .map_err(|_| Trouble::Other("the server's RSA key cannot be read".into()))?;
            send(talk, reply.sequence.wrapping_add(1), &sealed(&key)?)?;
            logins.keep_rsa_key(place, key);
            Ok(())
        }
        _ => Err(Trouble::Other("the server's question about the password makes no sense".into())),
    }
}

/// MariaDB's ed25519: an Ed25519 signature of the nonce whose secret key is SHA512(password) (MariaDB manual,
/// "Authentication Plugin - ed25519").
fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let hash: [u8; 64] = Sha512::digest(password).into();
    let mut low = [0; 32];
    low.copy_from_slice(&hash[..32]);
    let secret = Scalar::from_bytes_mod_order(clamp_integer(low));
    let wide = |parts: &[&[u8]]| {
        let mut digest = Sha512::new();
        parts.iter().for_each(|part| digest.update(part));
        Scalar::from_bytes_mod_order_wide(&digest.finalize().into())
    };
    let public = EdwardsPoint::mul_base(&secret).compress();
    let ephemeral = wide(&[&hash[32..], nonce]);
    let commitment = EdwardsPoint::mul_base(&ephemeral).compress();
    let challenge = wide(&[commitment.as_bytes(), public.as_bytes(), nonce]);
    let response = challenge * secret + ephemeral;
    [commitment.as_bytes().as_slice(), response.as_bytes()].concat()
}
