//! `PUT /clients/{id}`

use std::sync::Arc;

use axum::extract::State;
use ipnet::IpNet;
use perennial_domain::{ClientId, EventKind, Rule, Scope, SingleLine, ValidationError};

use super::{
    ScopeLimit,
    body::{UpdateClient, parse_update},
    check_settings, lock_enabled, scope_texts,
    table::{self, ClientRow, ClientSettings},
    view::ClientView,
};
use crate::{
    app::App,
    auth::{Caller, ClientsWrite, tenants::table::notify_clients_changed},
    config::Mode,
    db::PooledConnection,
    events,
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::{ClientIdPath, IfMatchParam},
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::{ChangeOrigin, Locked, not_found},
};

/// Settings to change; `None` keeps the current value. A list replaces the current one.
#[derive(Debug, Default)]
pub struct ClientChanges {
    pub name: Option<SingleLine<200>>,
    pub scopes: Option<Vec<Scope>>,
    /// An empty list allows any address.
    pub allow_addresses: Option<Vec<IpNet>>,
    pub allowed_origins: Option<Vec<String>>,
}

impl ClientChanges {
    /// Returns whether no setting changes.
    pub fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.scopes.is_none()
            && self.allow_addresses.is_none()
            && self.allowed_origins.is_none()
    }

    fn apply(&self, before: &ClientSettings) -> ClientSettings {
        let addresses = self.allow_addresses.as_ref();
        let addresses =
            addresses.map(|networks| networks.iter().map(ToString::to_string).collect());
        ClientSettings {
            name: { self.name.as_ref() }.map_or_else(|| before.name.clone(), ToString::to_string),
            scopes: { self.scopes.as_deref() }.map_or_else(|| before.scopes.clone(), scope_texts),
            allow_addresses: addresses.unwrap_or_else(|| before.allow_addresses.clone()),
            allowed_origins: { self.allowed_origins.clone() }
                .unwrap_or_else(|| before.allowed_origins.clone()),
        }
    }
}

/// Update a client
///
/// Changes only the fields in the request, within a second on all instances. The calling client must have every scope that
/// the client has before and after the change.
#[utoipa::path(
    put,
    path = "/clients/{id}",
    tag = "Clients",
    operation_id = "updateClient",
    params(
        ClientIdPath,
        IfMatchParam,
    ),
    request_body(content = UpdateClient, description = "The fields to change."),
    responses(
        (status = 200, description = "The client.", body = ClientView),
        (status = 404, description = "There is no such client (`client_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The client is disabled (`client_disabled`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<ClientsWrite>,
    PathParam(id): PathParam<ClientId>,
    if_match: IfMatch,
    fields: BodyFields,
) -> Result<OkJson<ClientView>, Problem> {
    let id = id.map_err(not_found::<ClientRow>)?;
    let mut home = app.db.home()?.connection().await?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let limit = ScopeLimit::Only(caller.scopes());
    let changes = |current: &ClientRow| parse_update(fields, current);
    let client = update_client(
        &mut home,
        &origin,
        app.mode,
        limit,
        (id, &if_match),
        changes,
    );
    Ok(OkJson(ClientView::from(&client.await?)))
}

/// Updates the settings of a client in a transaction and returns it. Records nothing if no setting changes.
pub async fn update_client(
    home: &mut PooledConnection,
    origin: &ChangeOrigin<'_>,
    mode: Mode,
    limit: ScopeLimit<'_>,
    (id, if_match): (ClientId, &IfMatch),
    changes: impl FnOnce(&ClientRow) -> Result<ClientChanges, Problem>,
) -> Result<ClientRow, Problem> {
    let tx = home.begin();
    let Locked { record, now, .. } = lock_enabled(&tx, origin, id, if_match).await?;
    let changes = changes(&record)?;
    let scopes = changes.scopes.as_deref().unwrap_or_default();
    let origins = changes.allowed_origins.as_deref().unwrap_or_default();
    check_settings(record.kind, scopes, origins)?;
    let before = &record.settings;
    let after = changes.apply(before);
    limit.check(&before.scopes)?;
    limit.check(&after.scopes)?;
    let opens_addresses = after.allow_addresses.is_empty() && !before.allow_addresses.is_empty();
    if opens_addresses && mode == Mode::Live && record.has_first_key {
        let message = "cannot allow any address: the client still has its first key, which can be guessed if an operator \
                       chose it; rotate the key and let the old one expire first";
        let error = ValidationError::new(Rule::InvalidFormat, message);
        return Err(Problem::from_field_errors(vec![("allow_addresses", error)]));
    }
    if after == *before {
        return Ok(record);
    }
    table::update(&tx, origin.tenant.id, id, &after).await?;
    notify_clients_changed(&tx, Some(origin.tenant.id)).await?;
    let data = events::diff(before, &after)?;
    origin
        .context(now, &tx)
        .record_event(EventKind::ClientUpdated, id, &data)
        .await?;
    tx.commit().await?;
    Ok(ClientRow {
        settings: after,
        ..record
    })
}
