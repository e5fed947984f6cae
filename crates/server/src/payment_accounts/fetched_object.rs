//! What the fetched objects of all payment providers share: facts, errors, and reading JSON by field.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, FieldError, PaymentFact, PaymentObjectKind, ReportedFact, SubscriptionFact,
    ValidationError,
};
use serde_json::Value;

use super::provider_notification::PaymentObjectRef;
use crate::http::outbound::ApiHttpError;

/// What a payment provider reports about an object.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchedObject {
    Subscription {
        reported: ReportedFact<SubscriptionFact>,
        customer: CustomerRef,
    },
    Payment(ReportedFact<PaymentFact>),
    /// A payment that is for no subscription of the provider.
    Purchase(Box<FetchedPurchase>),
    /// The object leads to this one, as a refund to its payment and a payment to its invoice.
    LeadsTo(PaymentObjectRef),
    /// No record follows the object, and why.
    Unrelated(&'static str),
}

/// A one-time purchase, as the provider reports it. A lifetime subscription follows it if a lifetime plan has its price.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedPurchase {
    pub payment: ReportedFact<PaymentFact>,
    pub subscription: ReportedFact<SubscriptionFact>,
    pub customer: CustomerRef,
}

impl FetchedObject {
    /// Returns the customer of what was bought.
    pub fn customer_mut(&mut self) -> Option<&mut CustomerRef> {
        match self {
            Self::Subscription { customer, .. } => Some(customer),
            Self::Purchase(purchase) => Some(&mut purchase.customer),
            Self::Payment(_) | Self::LeadsTo(_) | Self::Unrelated(_) => None,
        }
    }
}

/// The customer of a subscription, which selects a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerRef {
    /// The payment provider's id.
    pub id: String,
    pub email: Option<String>,
    /// The value that a checkout was created with, see [`super::user_token`].
    pub user_token: Option<String>,
    /// Whether a notification that has not arrived yet may have the value. The API of Lemon Squeezy does not return it.
    pub may_be_named_later: bool,
}

/// Why an object has no fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Http(#[from] ApiHttpError),
    #[error(transparent)]
    Shape(#[from] UnknownShape),
}

/// A field that is missing or has an unknown value, as in a version of the API that is newer than this service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{noun} {field}: {message}")]
pub struct UnknownShape {
    /// The object.
    pub noun: &'static str,
    pub field: String,
    pub message: String,
}

impl FetchError {
    /// Returns whether the request may have taken effect, although it has no usable response.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Http(error) => match error {
                ApiHttpError::Unavailable(_)
                | ApiHttpError::Timeout
                | ApiHttpError::Connection(_)
                | ApiHttpError::Garbage => true,
                ApiHttpError::RateLimited(_)
                | ApiHttpError::Unauthorized(..)
                | ApiHttpError::NotFound(_)
                | ApiHttpError::Rejected(..) => false,
            },
            Self::Shape(_) => true,
        }
    }

    /// Returns whether the same request may succeed later, without a change of the object.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Http(error) => match error {
                ApiHttpError::RateLimited(_)
                | ApiHttpError::Unavailable(_)
                | ApiHttpError::Timeout
                | ApiHttpError::Connection(_)
                | ApiHttpError::Garbage
                | ApiHttpError::Unauthorized(..) => true,
                ApiHttpError::NotFound(_) | ApiHttpError::Rejected(..) => false,
            },
            Self::Shape(_) => false,
        }
    }

    /// Returns whether the API knows no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Http(ApiHttpError::NotFound(_)))
    }
}

/// Reads the fields of a JSON object. Errors name the field and do not contain its value.
#[derive(Debug, Clone, Copy)]
pub struct ObjectReader<'a> {
    /// The object in error messages.
    pub noun: &'static str,
    pub value: &'a Value,
}

impl<'a> ObjectReader<'a> {
    pub fn new(noun: &'static str, value: &'a Value) -> Self {
        Self { noun, value }
    }

    /// Returns the error for a field.
    pub fn error(&self, pointer: &str, message: impl Into<String>) -> UnknownShape {
        UnknownShape {
            noun: self.noun,
            field: pointer.trim_start_matches('/').replace('/', "."),
            message: message.into(),
        }
    }

    /// Converts an error of the domain, which names the field itself.
    pub fn field_error(&self, (field, error): FieldError) -> UnknownShape {
        self.error(field, error.message)
    }

    /// Returns the value at a JSON pointer, unless it is missing or null.
    pub fn get(&self, pointer: &str) -> Option<&'a Value> {
        self.value.pointer(pointer).filter(|value| !value.is_null())
    }

    fn optional<T>(
        &self,
        pointer: &str,
        expected: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, UnknownShape> {
        let Some(value) = self.get(pointer) else {
            return Ok(None);
        };
        let converted = convert(value);
        converted
            .map(Some)
            .ok_or_else(|| self.error(pointer, format!("must be {expected}")))
    }

    fn required<T>(&self, pointer: &str, value: Option<T>) -> Result<T, UnknownShape> {
        value.ok_or_else(|| self.error(pointer, "is missing"))
    }

    pub fn optional_text(&self, pointer: &str) -> Result<Option<&'a str>, UnknownShape> {
        self.optional(pointer, "a text", Value::as_str)
    }

    pub fn text(&self, pointer: &str) -> Result<&'a str, UnknownShape> {
        self.required(pointer, self.optional_text(pointer)?)
    }

    pub fn optional_integer(&self, pointer: &str) -> Result<Option<i64>, UnknownShape> {
        self.optional(pointer, "an integer", Value::as_i64)
    }

    pub fn integer(&self, pointer: &str) -> Result<i64, UnknownShape> {
        self.required(pointer, self.optional_integer(pointer)?)
    }

    /// Returns a truth value, which is false if it is missing.
    pub fn flag(&self, pointer: &str) -> Result<bool, UnknownShape> {
        let flag = self.optional(pointer, "true or false", Value::as_bool)?;
        Ok(flag.unwrap_or(false))
    }

    /// Returns the id of an object: a text, a number, or the `id` of an object that is contained.
    pub fn optional_id(&self, pointer: &str) -> Result<Option<String>, UnknownShape> {
        self.optional(pointer, "an id", |value| {
            let id = value.get("id").unwrap_or(value);
            match id.as_u64() {
                Some(number) => Some(number.to_string()),
                None => id.as_str().map(str::to_owned),
            }
        })
    }

    pub fn id(&self, pointer: &str) -> Result<ExternalId, UnknownShape> {
        let id = self.required(pointer, self.optional_id(pointer)?)?;
        self.parsed(pointer, id.parse())
    }

    /// Returns a time in Unix seconds.
    pub fn optional_seconds(&self, pointer: &str) -> Result<Option<Timestamp>, UnknownShape> {
        self.optional(pointer, "a time in Unix seconds", |value| {
            Timestamp::from_second(value.as_i64()?).ok()
        })
    }

    pub fn seconds(&self, pointer: &str) -> Result<Timestamp, UnknownShape> {
        self.required(pointer, self.optional_seconds(pointer)?)
    }

    /// Returns a time in RFC 3339, in whole microseconds.
    pub fn optional_rfc3339(&self, pointer: &str) -> Result<Option<Timestamp>, UnknownShape> {
        self.optional(pointer, "a time in RFC 3339", |value| {
            let time: Timestamp = value.as_str()?.parse().ok()?;
            Timestamp::from_microsecond(time.as_microsecond()).ok()
        })
    }

    pub fn rfc3339(&self, pointer: &str) -> Result<Timestamp, UnknownShape> {
        self.required(pointer, self.optional_rfc3339(pointer)?)
    }

    /// Returns the items of an array, each as an object of this noun.
    pub fn items(&self, pointer: &str) -> Result<Vec<ObjectReader<'a>>, UnknownShape> {
        let items = self.optional(pointer, "an array", Value::as_array)?;
        let items = self.required(pointer, items)?;
        let noun = self.noun;
        Ok({ items.iter() }.map(|value| Self { noun, value }).collect())
    }

    /// Converts a result of the domain.
    pub fn parsed<T>(
        &self,
        pointer: &str,
        result: Result<T, ValidationError>,
    ) -> Result<T, UnknownShape> {
        result.map_err(|error| self.error(pointer, error.message))
    }
}

/// Returns a reference to an object that another one names.
pub fn leads_to(kind: PaymentObjectKind, id: impl Into<String>) -> FetchedObject {
    FetchedObject::LeadsTo(PaymentObjectRef {
        kind,
        id: id.into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn error_names_the_field_and_not_its_value() {
        let value = json!({"a": {"b": "hush"}, "n": 7, "nothing": null});
        let object = ObjectReader::new("subscription", &value);
        assert_eq!(object.text("/a/b"), Ok("hush"));
        assert_eq!(object.optional_text("/nothing"), Ok(None));
        let missing = object.text("/nothing").unwrap_err();
        assert_eq!(missing.to_string(), "subscription nothing: is missing");
        let wrong = object.integer("/a/b").unwrap_err();
        assert_eq!(wrong.to_string(), "subscription a.b: must be an integer");
        assert_eq!(object.optional_id("/n"), Ok(Some("7".to_owned())));
        assert!(object.optional_id("/a").is_err());
    }
}
