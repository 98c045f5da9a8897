//! TLS whose certificate is read again when its files change.
//!
//! In: certificate and key files, as a Secret's volume holds them. Out: accepted connections. A pair that cannot be
//! read, or is half-written, leaves the last one in force. Mirrors `kvplan_router.transport.tls`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;

const HANDSHAKE: Duration = Duration::from_secs(10);
const HANDSHAKES_AT_A_TIME: usize = 256;
const AFTER_A_REFUSED_ACCEPT: Duration = Duration::from_millis(10);

/// PEM files of the certificate chain and its private key.
#[derive(Clone)]
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A pair as read from its files.
#[derive(PartialEq)]
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// A certificate and its key that follow their files.
pub struct ReloadingCertificate {
    files: Files,
    seen: Pair,
    acceptor: TlsAcceptor,
}

impl ReloadingCertificate {
    /// Read the files; an error if they cannot be read, or do not belong together.
    pub fn read(files: Files) -> io::Result<Self> {
        let seen = read(&files)?;
        let acceptor = acceptor(&seen)?;
        Ok(Self { files, seen, acceptor })
    }

    /// What accepts the next connection.
    fn newest(&mut self) -> TlsAcceptor {
        if let Ok(pair) = read(&self.files)
            && pair != self.seen
            && let Ok(newer) = acceptor(&pair)
        {
            (self.seen, self.acceptor) = (pair, newer);
        }
        self.acceptor.clone()
    }
}

/// Connections whose handshake is done; a slow one delays no other.
pub fn accept(
    listener: TcpListener,
    mut certificate: ReloadingCertificate,
) -> ReceiverStream<io::Result<TlsStream<TcpStream>>> {
    let (ready, accepted) = mpsc::channel(HANDSHAKES_AT_A_TIME);
    tokio::spawn(async move {
        loop {
            let connection = tokio::select! {
                connection = listener.accept() => connection,
                () = ready.closed() => return,
            };
            match connection {
                Ok((stream, _)) => {
                    tokio::spawn(shake_hands(certificate.newest(), stream, ready.clone()));
                }
                Err(_) => tokio::time::sleep(AFTER_A_REFUSED_ACCEPT).await, // out of descriptors
            }
        }
    });
    ReceiverStream::new(accepted)
}

async fn shake_hands(acceptor: TlsAcceptor, stream: TcpStream, ready: mpsc::Sender<io::Result<TlsStream<TcpStream>>>) {
    // A peer that cannot or will not speak TLS is no error of ours, and a server that stopped listening none of its.
    if stream.set_nodelay(true).is_ok()
        && let Ok(Ok(secured)) = timeout(HANDSHAKE, acceptor.accept(stream)).await
    {
        drop(ready.send(Ok(secured)).await);
    }
}

fn read(files: &Files) -> io::Result<Pair> {
    Ok(Pair { certificate: std::fs::read(&files.certificate)?, key: std::fs::read(&files.key)? })
}

fn acceptor(pair: &Pair) -> io::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_slice_iter(&pair.certificate).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(&pair.key);
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain.map_err(io::Error::other)?, key.map_err(io::Error::other)?)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
