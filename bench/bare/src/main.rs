//! A route that answers the same bytes to everybody: what the session check is measured beside.
//!
//!     perennial-bare PORT FILE

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    reason = "a tool of the benchmark: to panic is to say what is wrong"
)]

use axum::{Router, body::Bytes, http::header, routing::post};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let body = Bytes::from(std::fs::read(arguments.next().expect("a file")).expect("its bytes"));
    let answer = async move || ([(header::CONTENT_TYPE, "application/json")], body.clone());
    let router: Router = Router::new().route("/authentication/user-logged-in", post(answer));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.expect("the port is free");
        axum::serve(listener, router).await.expect("it serves");
    });
}
