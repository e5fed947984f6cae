//! Parameters of deferred statements.

use std::fmt;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type};

use super::Error;

/// A parameter in PostgreSQL's binary format; `None` is NULL.
pub struct EncodedParam(Option<Box<[u8]>>);

impl EncodedParam {
    pub fn new(param: &(dyn ToSql + Sync), kind: &Type) -> Result<Self, Error> {
        let mut bytes = BytesMut::new();
        let encoded = param.to_sql_checked(kind, &mut bytes);
        match encoded.map_err(|error| Error::Internal(error.to_string()))? {
            IsNull::Yes => Ok(Self(None)),
            IsNull::No => Ok(Self(Some(bytes.as_ref().into()))),
        }
    }
}

/// Hides the value, which may be confidential.
impl fmt::Debug for EncodedParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl ToSql for EncodedParam {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(bytes) => {
                out.put_slice(bytes);
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.to_sql(kind, out)
    }
}
