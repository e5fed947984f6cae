//! Staff members: the people who work with the console, and their roles.

use crate::Scope;

string_enum! {
    /// What a staff member may see and do, as a set of scopes.
    pub enum StaffRole: "a staff role" {
        /// Reads users, subscriptions, plans, payments and events.
        Viewer = "viewer",
        /// A viewer who also changes users, subscriptions and payments.
        Support = "support",
        /// A viewer who also reads reports and changes payments.
        Finance = "finance",
        /// Has every scope, except that of signing users in.
        Admin = "admin",
    }
}

impl StaffRole {
    const VIEWER: &'static [Scope] = &[
        Scope::PlansRead,
        Scope::SubscriptionsRead,
        Scope::PaymentsRead,
        Scope::UsersRead,
        Scope::EventsRead,
    ];
    const SUPPORT: &'static [Scope] = &[
        Scope::PlansRead,
        Scope::SubscriptionsRead,
        Scope::SubscriptionsWrite,
        Scope::PaymentsRead,
        Scope::PaymentsWrite,
        Scope::UsersRead,
        Scope::UsersWrite,
        Scope::EventsRead,
    ];
    const FINANCE: &'static [Scope] = &[
        Scope::PlansRead,
        Scope::SubscriptionsRead,
        Scope::PaymentsRead,
        Scope::PaymentsWrite,
        Scope::UsersRead,
        Scope::EventsRead,
        Scope::ReportsRead,
    ];

    /// Returns the scopes of a member with this role.
    pub const fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Viewer => Self::VIEWER,
            Self::Support => Self::SUPPORT,
            Self::Finance => Self::FINANCE,
            // Users sign in with a client.
            Self::Admin => match &Scope::ALL {
                [Scope::Auth, others @ ..] => others,
                all => all,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_includes_the_viewer_and_the_admin_includes_every_role() {
        for role in StaffRole::ALL {
            for scope in StaffRole::Viewer.scopes() {
                assert!(role.scopes().contains(scope), "{role} {scope}");
            }
            for scope in role.scopes() {
                assert!(StaffRole::Admin.scopes().contains(scope), "{role} {scope}");
            }
        }
    }

    #[test]
    fn admins_have_every_scope_except_auth() {
        for scope in Scope::ALL {
            let has_it = StaffRole::Admin.scopes().contains(&scope);
            assert_eq!(has_it, scope != Scope::Auth, "{scope}");
        }
    }

    #[test]
    fn only_admins_have_administrative_scopes() {
        for role in StaffRole::ALL {
            let has_one = role.scopes().iter().any(|scope| scope.is_administrative());
            assert_eq!(has_one, role == StaffRole::Admin, "{role}");
        }
    }
}
