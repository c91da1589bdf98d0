//! Downloads from a server of this machine, with and without encryption.

#![allow(clippy::unwrap_used)]

use rcgen::generate_simple_self_signed;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use ureq::tls::Certificate;

use super::*;

/// A connection, encrypted or not.
trait TestStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> TestStream for T {}

const CONTENT: &[u8] = b"a file of public data";

/// SHA-256 of the content.
fn sum() -> String {
    HEXLOWER.encode(&Sha256::digest(CONTENT))
}

fn set(address: &str) -> PublicSet {
    let file = PublicFile {
        name: "a.csv".into(),
        bytes: CONTENT.len() as u64,
        sha256: sum(),
        address: Some(address.into()),
    };
    PublicSet {
        name: "a".into(),
        title: String::new(),
        used: String::new(),
        source: String::new(),
        page: String::new(),
        licence: String::new(),
        folder: "folder".into(),
        note: None,
        files: vec![file],
    }
}

/// Returns what the server answers under a path.
fn answer(path: &str) -> Vec<u8> {
    let with = |head: &str, body: &[u8]| [head.as_bytes(), b"\r\n\r\n", body].concat();
    let ok = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}");
    match path {
        "/good" => with(&ok(CONTENT.len()), CONTENT),
        "/chunked" => {
            let chunk = [
                format!("{:x}\r\n", CONTENT.len()).as_bytes(),
                CONTENT,
                b"\r\n0\r\n\r\n",
            ]
            .concat();
            with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", &chunk)
        }
        "/moved" => with(
            "HTTP/1.1 302 Found\r\nLocation: /good\r\nContent-Length: 0",
            b"",
        ),
        "/loop" => with(
            "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0",
            b"",
        ),
        "/plain" => with(
            "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:9/x\r\nContent-Length: 0",
            b"",
        ),
        "/short" => with(&ok(3), &CONTENT[..3]),
        "/cut" => with(&ok(CONTENT.len()), &CONTENT[..3]),
        "/long" => with(&ok(1 << 20), &vec![b'x'; 1 << 20]),
        "/other" => with(&ok(CONTENT.len()), &vec![b'x'; CONTENT.len()]),
        _ => with("HTTP/1.1 404 Not Found\r\nContent-Length: 0", b""),
    }
}

/// Starts a server and returns its address. Every connection has one request.
fn server(tls: Option<ServerConfig>) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    // The server ends with the process of the tests.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(serve(tls, tell));
    });
    told.recv().unwrap()
}

async fn serve(tls: Option<TlsAcceptor>, tell: std::sync::mpsc::Sender<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let scheme = if tls.is_some() { "https" } else { "http" };
    tell.send(format!("{scheme}://localhost:{port}")).unwrap();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        let tls = tls.clone();
        tokio::spawn(async move {
            let mut stream: Box<dyn TestStream> = match tls {
                // A client that does not trust the certificate hangs up.
                Some(tls) => match tls.accept(tcp).await {
                    Ok(stream) => Box::new(stream),
                    Err(_) => return,
                },
                None => Box::new(tcp),
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else {
                    return;
                };
                head.push(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap();
            // The client may have hung up.
            let _ = stream.write_all(&answer(path)).await;
            let _ = stream.shutdown().await;
        });
    }
}

/// The result of downloading one path into an empty folder, and what is then in the folder.
fn fetched(client: &Client, address: String) -> (Result<(), String>, Vec<String>) {
    let data = tempfile::tempdir().unwrap();
    let got = get(client, &set(&address), data.path(), false, |_, _| ());
    let there = fs::read_dir(data.path().join("folder")).unwrap();
    let names = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    (got.map_err(|error| error.to_string()), names.collect())
}

#[test]
fn a_file_is_kept_only_if_it_is_right() {
    let (client, server) = (Client::default(), server(None));
    for path in ["good", "chunked", "moved"] {
        let (got, there) = fetched(&client, format!("{server}/{path}"));
        assert_eq!((got, there), (Ok(()), vec!["a.csv".to_owned()]), "{path}");
    }
    for (path, expected) in [
        ("short", "expected 21 bytes, found 3"),
        ("long", "expected 21 bytes, found more"),
        ("other", "expected the SHA-256"),
        ("cut", "cannot download"),
        ("loop", "redirects more than 5 times"),
        ("nothing", "the server answers 404 Not Found"),
    ] {
        let (got, there) = fetched(&client, format!("{server}/{path}"));
        let error = got.unwrap_err();
        assert!(error.contains(expected), "{path}: {error}");
        assert!(there.is_empty(), "{path} leaves {there:?}");
    }
    let (got, _) = fetched(&client, "ftp://localhost/a".into());
    assert!(got.unwrap_err().contains("begins with https:// or http://"));
}

#[test]
fn existing_files_are_kept_and_replaced_only_by_force() {
    let (client, server) = (Client::default(), server(None));
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("folder").join("a.csv");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "something else").unwrap();
    let set = set(&format!("{server}/good"));
    let error = get(&client, &set, data.path(), false, |_, _| ()).unwrap_err();
    assert!(matches!(error, DownloadError::Exists(_)), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"something else");
    for expected in [Got::Downloaded, Got::Kept] {
        let mut told = Vec::new();
        get(&client, &set, data.path(), true, |_, got| told.push(got)).unwrap();
        assert_eq!(told, [expected]);
        assert_eq!(fs::read(&path).unwrap(), CONTENT);
    }
    let mut repacked = set.clone();
    repacked.files[0].address = None;
    fs::remove_file(&path).unwrap();
    let error = get(&client, &repacked, data.path(), true, |_, _| ()).unwrap_err();
    assert!(
        error.to_string().contains("has no public address"),
        "{error}"
    );
}

#[test]
fn an_encrypted_server_must_have_a_trusted_certificate() {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.key_pair.serialize_der()).unwrap();
    let provider = Arc::new(default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let server = server(Some(config));
    let roots = vec![Certificate::from_der(&certificate).to_owned()];
    let trusting = Client::trusting(roots.into());
    let (got, there) = fetched(&trusting, format!("{server}/moved"));
    assert_eq!((got, there.len()), (Ok(()), 1));
    let (got, _) = fetched(&trusting, format!("{server}/plain"));
    assert!(got.unwrap_err().contains("which is not encrypted"));
    let (got, there) = fetched(&Client::default(), format!("{server}/good"));
    let error = got.unwrap_err();
    assert!(
        error.contains("no encrypted connection to localhost"),
        "{error}"
    );
    assert!(there.is_empty());
}
