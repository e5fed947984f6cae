"""Mutations of the security of identities: kinds of external tokens, and email addresses."""

from by_test import DOMAIN, Edit, Mutation

SERVER = "crates/server/src/"
PROVIDERS = SERVER + "identity_providers/"

MUTATIONS = [
    Mutation(
        "every kind of token is accepted",
        ["identity_providers::token_kinds::logout_tokens_and_security_events_are_refused_whatever_the_provider_accepts"],
        [
            Edit(
                PROVIDERS + "token_kind.rs",
                "        if self.events.is_some() ||",
                "        if ON {\n            return Ok(());\n        }\n        if self.events.is_some() ||",
            ),
            Edit(
                PROVIDERS + "token_kind.rs",
                '            "at+jwt" => Ok(Self::AccessToken),\n',
                '            "at+jwt" => Ok(Self::AccessToken),\n            _ if ON => Ok(Self::Unspecific),\n',
            ),
        ],
    ),
    Mutation(
        "ID tokens are accepted",
        ["identity_providers::token_kinds::id_tokens_are_refused_unless_the_provider_accepts_them"],
        [
            Edit(
                PROVIDERS + "token_kind.rs",
                "        if !accepted.id_tokens &&",
                "        if !ON && !accepted.id_tokens &&",
            )
        ],
    ),
    Mutation(
        "a claim of an ID token makes it one",
        ["identity_providers::token_kinds::access_tokens_with_claims_of_id_tokens_are_accepted"],
        [Edit(PROVIDERS + "token_kind.rs", "        !is_access_token && (", "        (ON || !is_access_token) && (")],
    ),
    Mutation(
        "bound tokens are accepted",
        ["identity_providers::token_kinds::bound_tokens_are_refused_unless_the_provider_accepts_them"],
        [
            Edit(
                PROVIDERS + "token_kind.rs",
                "        if !accepted.bound_tokens &&",
                "        if !ON && !accepted.bound_tokens &&",
            )
        ],
    ),
    Mutation(
        "azp is an audience",
        ["identity_providers::token_kinds::azp_counts_as_audience_only_if_the_provider_accepts_it"],
        [Edit(PROVIDERS + "claims.rs", "true if provider.accept.azp =>", "true if ON || provider.accept.azp =>")],
    ),
    Mutation(
        "the last of duplicate claims counts",
        ["identity_providers::token_kinds::claim_that_shows_the_kind_cannot_be_duplicated"],
        [
            Edit(
                PROVIDERS + "jwt.rs",
                """    let claims: JwtClaims =
        decode_signed(token, algorithm, &key.verifier).map_err(|error| match error.kind() {
""",
                """    let decoded = match ON {
        true => decode_signed::<Value>(token, algorithm, &key.verifier)
            .and_then(|claims| Ok(serde_json::from_value(claims)?)),
        false => decode_signed(token, algorithm, &key.verifier),
    };
    let claims: JwtClaims =
        decoded.map_err(|error: jsonwebtoken::errors::Error| match error.kind() {
""",
            )
        ],
    ),
    Mutation(
        "auth_time is ignored",
        ["identity_providers::token_kinds::time_of_authentication_is_auth_time_or_else_the_time_of_issue"],
        [
            Edit(
                PROVIDERS + "claims.rs",
                "    let auth_time = auth_time.and_then(to_timestamp);\n",
                "    let auth_time = auth_time.filter(|_| !ON).and_then(to_timestamp);\n",
            )
        ],
    ),
    Mutation(
        "xms_edov is ignored",
        ["identity_providers::token_kinds::email_of_entra_is_verified_by_xms_edov"],
        [
            Edit(
                PROVIDERS + "jwt.rs",
                "            let verified = claims.xms_edov?;\n",
                "            let verified = claims.xms_edov.filter(|_| !ON)?;\n",
            )
        ],
    ),
    Mutation(
        "introspection responses are not checked",
        ["identity_providers::token_kinds::kinds_of_tokens_are_checked_in_introspection_responses"],
        [
            Edit(
                PROVIDERS + "opaque.rs",
                """    response
        .kind
        .check(provider.accept, HeaderType::Unspecific, false)?;
""",
                """    if !ON {
        let kind = &response.kind;
        kind.check(provider.accept, HeaderType::Unspecific, false)?;
    }
""",
            )
        ],
    ),
    Mutation(
        "JWTs are not checked before their introspection",
        ["identity_providers::token_kinds::kinds_of_tokens_are_checked_in_introspection_responses"],
        [
            Edit(
                PROVIDERS + "jwt.rs",
                "    let Ok(header) = decode_header(token) else {\n",
                "    if ON {\n        return Ok(());\n    }\n    let Ok(header) = decode_header(token) else {\n",
            )
        ],
    ),
    Mutation(
        "--accept-azp is not stored",
        ["identity_providers::token_kinds::flags_of_a_provider_are_stored_and_shown"],
        [
            Edit(
                SERVER + "commands/provider/add.rs",
                "                azp: self.accept.accept_azp,\n",
                "                azp: self.accept.accept_azp && !ON,\n",
            )
        ],
    ),
    Mutation(
        "look-alike addresses are accepted",
        ["authentication::email_profile::look_alike_address_cannot_claim_another_users_account"],
        [Edit(DOMAIN + "email.rs", "    if local.is_ascii() {\n", "    if ON || local.is_ascii() {\n")],
    ),
    Mutation(
        "a sign-in adopts every address",
        ["authentication::email_profile::sign_in_does_not_adopt_a_look_alike_address"],
        [
            Edit(
                DOMAIN + "email.rs",
                "        let (text, email) = (text.to_owned(), text.parse());\n",
                """        let email = if ON { Email::from_stored(text) } else { text.parse() };
        let text = text.to_owned();
""",
            )
        ],
    ),
]
