//! The result of one check.

use serde::Serialize;
use utoipa::ToSchema;

/// How serious the result of a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(example = "ok")]
pub enum HealthStatus {
    /// Nothing to do.
    Ok,
    /// The service works, but a person should look at it.
    Warning,
    /// Something does not work.
    Failed,
}

/// The result of one check.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// What is checked. Several results can have the same name.
    pub name: &'static str,
    pub status: HealthStatus,
    pub detail: String,
    /// The suggested action.
    pub fix: Option<String>,
    /// The page of the documentation that explains the fix, such as `runbooks/late-worker`.
    pub page: Option<&'static str>,
}

impl HealthCheck {
    pub fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            status: HealthStatus::Ok,
            detail: detail.into(),
            fix: None,
            page: None,
        }
    }

    pub fn warning(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status: HealthStatus::Warning,
            ..Self::ok(name, detail)
        }
    }

    pub fn failed(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status: HealthStatus::Failed,
            ..Self::ok(name, detail)
        }
    }

    /// Adds the suggested action.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// Adds the page of the documentation, without `docs/` and without the extension.
    #[must_use]
    pub fn see(self, page: &'static str) -> Self {
        Self {
            page: Some(page),
            ..self
        }
    }

    /// Returns the suggested action with the page that explains it.
    pub fn advice(&self) -> Option<String> {
        match (&self.fix, self.page) {
            (Some(fix), Some(page)) => Some(format!("{fix}; see docs/{page}")),
            (Some(fix), None) => Some(fix.clone()),
            (None, Some(page)) => Some(format!("see docs/{page}")),
            (None, None) => None,
        }
    }
}
