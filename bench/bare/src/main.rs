//! A plain axum route that returns the contents of a file: the reference for the session check.
//!
//!     perennial-bare PORT FILE

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    reason = "a benchmark tool: a panic message is enough"
)]

use axum::{Router, body::Bytes, http::header, routing::post};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments
        .next()
        .and_then(|port| port.parse().ok())
        .expect("PORT must be a number");
    let body = Bytes::from(
        std::fs::read(arguments.next().expect("FILE is missing")).expect("FILE must be readable"),
    );
    let handler = async move || ([(header::CONTENT_TYPE, "application/json")], body.clone());
    let router: Router = Router::new().route("/authentication/user-logged-in", post(handler));
    let runtime = tokio::runtime::Runtime::new().expect("cannot start the runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.expect("cannot listen on PORT");
        axum::serve(listener, router)
            .await
            .expect("the server failed");
    });
}
