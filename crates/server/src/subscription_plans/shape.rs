//! How a plan's fields look in the document, in the bodies that make and change one. The code that reads
//! them is elsewhere; the contract tests hold the two together.

use perennial_domain::BillingCycle;
use serde_json::json;
use utoipa::openapi::{
    SchemaFormat,
    schema::{ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type},
};

use crate::http::schema::{amount_in, line, or_null, prose, words};

pub(super) fn name() -> Object {
    line("What people see: one line.", 200, "Pro")
}

pub(super) fn price() -> Schema {
    amount_in("What one billing cycle costs, exact to the currency's decimals; never rounded.")
}

pub(super) fn billing_cycle() -> Object {
    let own = BillingCycle::ALL.map(BillingCycle::as_str);
    let aliases = BillingCycle::ALIASES.map(|(word, _)| word);
    words(
        "How often it is paid for; upper and lower case are the same.",
        &[&own[..], &aliases].concat(),
    )
}

pub(super) fn product_id() -> Object {
    or_null(line(
        "The product at the payment provider.",
        255,
        "prod_1042",
    ))
}

pub(super) fn variants() -> ArrayBuilder {
    ArrayBuilder::new()
        .items(line("A variant.", 255, "var_1"))
        .max_items(Some(100))
        .description(Some("The product's variants there."))
        .examples([json!(["var_1", "var_2"])])
}

pub(super) fn variants_or_null() -> ArrayBuilder {
    variants().schema_type(SchemaType::Array(vec![Type::Array, Type::Null]))
}

/// RFC 3986, as far as a pattern can say it: an address in brackets and the larger ports are left out.
pub(super) fn href() -> Object {
    let part = "([A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*";
    let host = "([A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+";
    let pattern =
        format!("^[Hh][Tt][Tt][Pp][Ss]?://{host}(:[0-9]{{1,4}})?([/?]{part})?(#{part})?$");
    let link = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(2000))
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .pattern(Some(pattern))
        .description(Some(
            "The plan's page: http or https, without user name and password.",
        ))
        .examples([json!("https://example.com/plans/pro")]);
    or_null(link.build())
}

pub(super) fn description() -> Object {
    let about = "What people read; may have several lines.";
    or_null(prose(about, 5000, "For teams that ship every day."))
}

pub(super) fn features() -> Object {
    let about = "What it includes: a comma-separated list in one string, kept as it is.";
    or_null(prose(about, 5000, "SSO, Audit log, Priority support"))
}
