//! The status over HTTP, on this machine only: `/` is a page, `/federation` one of all nodes, `/metrics`
//! is for Prometheus.
//!
//! The server knows these paths and the methods GET and HEAD. It refuses requests for another host than
//! this machine, so that a web page elsewhere cannot read it through a name that leads here (DNS
//! rebinding). Connections are few, short, and one request long. Where there are too many, the oldest
//! gives way to a new one: an ordinary client is done after a moment, so the oldest are those that
//! hold their connection without asking.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::{StatusSource, all, metrics, page};

/// Connections at the same time; for one more, the oldest is closed.
const CONNECTIONS: usize = 64;
/// Time that a client may take to send its request.
const REQUEST: Duration = Duration::from_secs(2);
/// Time that a connection may last.
const CONNECTION: Duration = Duration::from_secs(5);
/// Pause after the system could not accept a connection, because too many files are open for example.
const PAUSE: Duration = Duration::from_millis(100);
/// Largest head of a request, in bytes.
const HEAD: usize = 16 << 10;

/// Reason for which the page and the metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Not an address and a port.
    #[error(
        "{0:?} is not an address for the page and the metrics: write it like \"127.0.0.1:9600\""
    )]
    Address(String),
    /// An address that others can reach.
    #[error(
        "{0} can be reached from other machines, and the page and the metrics have no password: listen \
         at 127.0.0.1 or [::1], and put a reverse proxy with access control in front of it"
    )]
    Public(SocketAddr),
    /// The system refuses.
    #[error("cannot serve the page and the metrics at {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
}

/// Reads an address of this machine alone, with its port.
///
/// # Errors
/// [`HttpError::Address`], [`HttpError::Public`].
pub fn address(text: &str) -> Result<SocketAddr, HttpError> {
    let address: SocketAddr = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse(),
    }
    .map_err(|_| HttpError::Address(text.into()))?;
    if address.ip().to_canonical().is_loopback() {
        Ok(address)
    } else {
        Err(HttpError::Public(address))
    }
}

/// Serves page and metrics from tasks of the current tokio runtime, for as long as it runs. Returns the
/// actual address.
///
/// # Errors
/// [`HttpError::Public`], [`HttpError::Listen`].
pub async fn serve(
    address: SocketAddr,
    source: StatusSource,
    nodes: all::NodesSource,
) -> Result<SocketAddr, HttpError> {
    if !address.ip().to_canonical().is_loopback() {
        return Err(HttpError::Public(address));
    }
    let refused = |reason| HttpError::Listen { address, reason };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    tokio::spawn(accept(listener, bound.port(), (source, nodes)));
    Ok(bound)
}

/// Accepts connections, and serves each in a task of its own.
async fn accept(listener: TcpListener, port: u16, sources: (StatusSource, all::NodesSource)) {
    // Oldest first.
    let mut open = VecDeque::new();
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        open.retain(|connection: &AbortHandle| !connection.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        open.push_back(tasks.spawn(converse(stream, port, sources.clone())));
    }
}

/// Answers one request. Clients that go away are no concern of the node.
async fn converse(stream: TcpStream, port: u16, (source, nodes): (StatusSource, all::NodesSource)) {
    let service = service_fn(|request: Request<Incoming>| {
        let (source, nodes) = (&source, &nodes);
        async move { Ok::<_, Infallible>(answer(&request, port, source, nodes).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .max_buf_size(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let _ = timeout(CONNECTION, served).await;
}

async fn answer<B>(
    request: &Request<B>,
    port: u16,
    source: &StatusSource,
    nodes: &all::NodesSource,
) -> Response<Full<Bytes>> {
    let plain = "text/plain; charset=utf-8";
    let html = "text/html; charset=utf-8";
    let (code, kind, text) = if !is_here(request, port) {
        let text = "this server answers requests for this machine only, by 127.0.0.1, [::1] or \
                    localhost and its port\n";
        (StatusCode::MISDIRECTED_REQUEST, plain, text.to_owned())
    } else if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let text = "only GET and HEAD are known here\n";
        (StatusCode::METHOD_NOT_ALLOWED, plain, text.to_owned())
    } else {
        match request.uri().path() {
            "/" => (StatusCode::OK, html, page::page(&source())),
            "/federation" => (StatusCode::OK, html, all::page::page(&nodes().await)),
            "/metrics" => (
                StatusCode::OK,
                metrics::CONTENT_TYPE,
                metrics::text(&source()),
            ),
            _ => {
                let text = "there are /, /federation and /metrics here\n";
                (StatusCode::NOT_FOUND, plain, text.to_owned())
            }
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if code == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// Returns whether the request names this machine and this port as its host.
fn is_here<B>(request: &Request<B>, port: u16) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let authority: Result<hyper::http::uri::Authority, _> = host.parse();
    let Ok(authority) = authority else {
        return false;
    };
    if authority.port_u16().unwrap_or(80) != port || host.contains('@') {
        return false;
    }
    let name = authority.host();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    name.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(loopback)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::status::fixture;

    /// The whole answer to these bytes.
    async fn exchange(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    fn nodes() -> all::NodesSource {
        Arc::new(|| Box::pin(std::future::ready(all::fixture::nodes())))
    }

    async fn server() -> SocketAddr {
        let source: StatusSource = Arc::new(fixture::status);
        serve(address("127.0.0.1:0").unwrap(), source, nodes())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn the_page_and_the_metrics_are_served_and_nothing_else() {
        let at = server().await;
        let ask =
            |method: &str, path: &str| format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\n\r\n");
        let page = exchange(at, &ask("GET", "/")).await;
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        assert!(
            page.contains("text/html") && page.contains("</html>"),
            "{page}"
        );
        assert!(
            page.contains("content-security-policy: default-src 'none'"),
            "{page}"
        );
        assert!(page.contains("connection: close"), "{page}");
        let metrics = exchange(at, &ask("GET", "/metrics")).await;
        assert!(metrics.contains(metrics::CONTENT_TYPE) && metrics.ends_with("# EOF\n"));
        let all = exchange(at, &ask("GET", "/federation")).await;
        assert!(
            all.starts_with("HTTP/1.1 200 ") && all.contains("of 4 nodes report"),
            "{all}"
        );
        let head = exchange(at, &ask("HEAD", "/")).await;
        assert!(
            head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
        for (request, code) in [
            (ask("POST", "/"), "405"),
            (ask("DELETE", "/metrics"), "405"),
            (ask("GET", "/status"), "404"),
            (ask("GET", "/../etc/passwd"), "404"),
        ] {
            let answer = exchange(at, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
            assert!(!answer.contains("north"), "{answer}");
        }
    }

    #[tokio::test]
    async fn silent_and_slow_clients_do_not_keep_others_from_the_page() {
        let at = server().await;
        let ask = format!("GET /metrics HTTP/1.1\r\nHost: {at}\r\n\r\n");
        let mut slow = Vec::new();
        for count in 0..200 {
            let mut stream = TcpStream::connect(at).await.unwrap();
            if count % 2 == 0 {
                // The node may have closed it already.
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").await;
            }
            slow.push(stream);
            if count % 50 == 49 {
                let answer = timeout(Duration::from_secs(1), exchange(at, &ask)).await;
                let answer = answer.unwrap();
                assert!(answer.ends_with("# EOF\n"), "{count}: {answer}");
            }
        }
        // A client that asks and does not read its answer gives way, too.
        let mut deaf = Vec::new();
        for _ in 0..2 * CONNECTIONS {
            let mut stream = TcpStream::connect(at).await.unwrap();
            let _ = stream.write_all(ask.as_bytes()).await;
            deaf.push(stream);
        }
        let answer = timeout(Duration::from_secs(1), exchange(at, &ask)).await;
        assert!(answer.unwrap().ends_with("# EOF\n"));
        // Of those that hold their connection, only some are left.
        let mut left = 0;
        for stream in &mut slow {
            let read = timeout(Duration::from_millis(1), stream.read(&mut [0; 1])).await;
            left += usize::from(read.is_err());
        }
        assert!(left <= CONNECTIONS, "{left}");
    }

    #[tokio::test]
    async fn a_request_for_another_host_is_refused() {
        let at = server().await;
        let port = at.port();
        let ask = |host: &str| format!("GET / HTTP/1.1\r\n{host}\r\n");
        for good in [
            format!("Host: 127.0.0.1:{port}\r\n"),
            format!("Host: localhost:{port}\r\n"),
            format!("Host: LocalHost:{port}\r\n"),
            format!("Host: [::1]:{port}\r\n"),
        ] {
            let answer = exchange(at, &ask(&good)).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{good}: {answer}");
        }
        for bad in [
            format!("Host: rebound.example:{port}\r\n"),
            format!("Host: localhost.rebound.example:{port}\r\n"),
            format!("Host: 192.0.2.7:{port}\r\n"),
            format!("Host: x@127.0.0.1:{port}\r\n"),
            "Host: 127.0.0.1:1\r\n".to_owned(),
            "Host: 127.0.0.1\r\n".to_owned(),
            format!("Host: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}\r\n"),
            String::new(),
        ] {
            let answer = exchange(at, &ask(&bad)).await;
            assert!(!answer.starts_with("HTTP/1.1 200 "), "{bad}: {answer}");
            assert!(!answer.contains("north"), "{bad}: {answer}");
        }
    }

    #[test]
    fn an_address_that_others_can_reach_is_refused_with_a_remedy() {
        for good in [
            "127.0.0.1:9600",
            "[::1]:9600",
            "localhost:9600",
            "127.1.2.3:0",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for public in ["0.0.0.0:9600", "192.168.1.2:9600", "[::]:9600"] {
            let error = address(public).unwrap_err().to_string();
            assert!(error.contains("reverse proxy"), "{error}");
        }
        for wrong in [
            "9600",
            "127.0.0.1",
            "http://127.0.0.1:9600",
            "node.example:9600",
        ] {
            let error = address(wrong).unwrap_err().to_string();
            assert!(error.contains("\"127.0.0.1:9600\""), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_browser_shows_the_page_with_its_style_and_loads_it_again() {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        let Some(browser) = names.into_iter().find(there) else {
            crate::skipped::skipped("there is no Chromium here");
            return;
        };
        let asked = Arc::new(AtomicU64::new(0));
        let counted = asked.clone();
        let source: StatusSource = Arc::new(move || {
            let mut status = fixture::status();
            status.round = 1 + counted.fetch_add(1, Ordering::Relaxed);
            status
        });
        let at = serve(address("127.0.0.1:0").unwrap(), source, nodes())
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let profile = format!("--user-data-dir={}", folder.path().display());
        let open = move |more: &'static str| {
            let mut command = Command::new(browser);
            command
                .args([
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-extensions",
                ])
                .args(["--enable-logging=stderr", &profile, more])
                .arg(format!("http://{at}/"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let shown = open("--dump-dom");
        let shown = tokio::task::spawn_blocking(|| shown.wait_with_output().unwrap());
        let shown = timeout(Duration::from_secs(60), shown)
            .await
            .unwrap()
            .unwrap();
        let (page, log) = (
            String::from_utf8_lossy(&shown.stdout).into_owned(),
            String::from_utf8_lossy(&shown.stderr).into_owned(),
        );
        assert!(page.contains("<h1>north</h1>"), "{page}{log}");
        assert!(!log.contains("Content Security Policy"), "{log}");
        // A page that stays open is loaded again.
        let before = asked.load(Ordering::Relaxed);
        let mut open = open("--remote-debugging-port=0");
        let again = async {
            let mut look = tokio::time::interval(Duration::from_millis(100));
            while asked.load(Ordering::Relaxed) < before + 2 {
                look.tick().await;
            }
        };
        let again = timeout(Duration::from_secs(60), again).await;
        open.kill().unwrap();
        open.wait().unwrap();
        again.unwrap();
    }
}
