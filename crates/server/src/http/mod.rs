//! The HTTP infrastructure that all endpoints share. It must not depend on any feature, such
//! as `users` or `subscriptions`.
//!
//! [`serve`] accepts connections, [`middleware`] wraps every request, [`query`], [`path_param`] and [`json`]
//! parse it, and [`response`] and [`problem`] render the result. [`metadata_field`] is a field that several
//! records have. [`schema`] (of field types), [`request_schema`] (of request bodies), [`filter_params`] (of
//! lists) and [`openapi`] (shared parameters, headers and responses) are parts of the OpenAPI document.
//! [`outbound`] sends requests to URLs that clients choose.
//! [`route_templates`] finds the path template of a request for logs and metrics.

pub mod accept;
pub mod allowed_hosts;
pub mod client_ip;
pub mod concurrency_limit;
mod connections;
pub mod csv_list;
mod drain_body;
pub mod etag;
pub mod filter_params;
pub mod html;
pub mod idempotency;
pub mod json;
pub mod metadata_field;
pub mod middleware;
pub mod network_rate_limit;
pub mod openapi;
pub mod outbound;
pub mod pagination;
pub mod path_param;
pub mod problem;
pub mod query;
pub mod rate_limit;
pub mod request_id;
pub mod request_schema;
pub mod response;
pub mod route_templates;
pub mod same_origin;
pub mod schema;
pub mod serve;
mod span;
mod timeout_stream;
