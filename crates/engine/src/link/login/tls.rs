//! TLS in five modes. Without verification the certificate is not looked at; with `verify-ca` its chain is, its
//! name is not (MySQL's own certificates carry none); with `verify-full` both are.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::Trouble;
use crate::link::{Endpoint, Login, TlsMode};

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(ring::default_provider())))
}

/// The configuration that the login asks for.
pub(crate) fn config(login: &Login) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot begin: {error}"))?;
    let config = match login.tls {
        TlsMode::VerifyCa | TlsMode::VerifyFull => {
            let trusted = authorities(login)?;
            let chain =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots(login, &trusted)?), provider())
                    .build()
                    .map_err(|error| format!("the certificate authority is of no use: {error}"))?;
            let name = login.tls == TlsMode::VerifyFull;
            let verifier = Lenient { chain: Some(chain), trusted, name };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        _ => {
            let verifier = Lenient { chain: None, trusted: Vec::new(), name: false };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    if login.tls_cert.is_empty() {
        return Ok(Arc::new(config.with_no_client_auth()));
    }
    let (certificates, key) = identity(login)?;
    config
        .with_client_auth_cert(certificates, key)
        .map(Arc::new)
        .map_err(|error| format!("the client certificate is of no use: {error}"))
}

/// The client's certificate and key.
fn identity(login: &Login) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let key_file = if login.tls_key.is_empty() { &login.tls_cert } else { &login.tls_key };
    let read = |file: &str, error: rustls::pki_types::pem::Error| {
        format!("the client certificate's file {file} cannot be read: {error}")
    };
    let certificates = CertificateDer::pem_file_iter(&login.tls_cert)
        .and_then(Iterator::collect)
        .map_err(|error| read(&login.tls_cert, error))?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| read(key_file, error))?;
    Ok((certificates, key))
}

fn authorities(login: &Login) -> Result<Vec<CertificateDer<'static>>, String> {
    if login.tls_ca.is_empty() {
        return Err("this TLS mode needs the certificate authority's file; add tls_ca=FILE to the URL".into());
    }
    let found: Vec<_> =
        CertificateDer::pem_file_iter(&login.tls_ca).and_then(Iterator::collect).map_err(|error| {
            format!("the certificate authority's file {} cannot be read: {error}", login.tls_ca)
        })?;
    if found.is_empty() {
        return Err(format!("{} holds no certificate", login.tls_ca));
    }
    Ok(found)
}

fn roots(login: &Login, trusted: &[CertificateDer<'static>]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("{} holds no usable authority: {error}", login.tls_ca))?;
    }
    Ok(roots)
}

/// The name that the certificate is for.
pub(crate) fn name(endpoint: &Endpoint) -> Result<ServerName<'static>, Trouble> {
    let host = if endpoint.host.is_empty() { "localhost" } else { &endpoint.host };
    ServerName::try_from(host.to_owned())
        .map_err(|_| Trouble::Other(format!("{host:?} is not a name that a certificate can be for")))
}

/// Hash of a certificate for tls-server-end-point (RFC 5929): SHA-256 unless it was signed with a longer one.
pub(crate) fn end_point_hash(certificate: &CertificateDer<'_>) -> Vec<u8> {
    // Object ids of sha384/sha512WithRSAEncryption and ecdsa-with-SHA384/SHA512.
    const SHA384: [&[u8]; 2] = [b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", b"\x2a\x86\x48\xce\x3d\x04\x03\x03"];
    const SHA512: [&[u8]; 2] = [b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", b"\x2a\x86\x48\xce\x3d\x04\x03\x04"];
    let holds =
        |ids: [&[u8]; 2]| ids.iter().any(|id| certificate.windows(id.len()).any(|window| window == *id));
    if holds(SHA384) {
        Sha384::digest(certificate).to_vec()
    } else if holds(SHA512) {
        Sha512::digest(certificate).to_vec()
    } else {
        Sha256::digest(certificate).to_vec()
    }
}

/// Looks at nothing, at the chain alone, or at the chain and the name.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// What the authority's file holds. A server may show that very certificate, signed by itself.
    trusted: Vec<CertificateDer<'static>>,
    name: bool,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name => Ok(ServerCertVerified::assertion()),
            // libpq and MySQL's client take it, too
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
                    && self.trusted.contains(end_entity) =>
            {
                if self.name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
