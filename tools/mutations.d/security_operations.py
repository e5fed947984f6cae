"""Mutations of the security of operations: settings, commands and database roles."""

from by_test import Edit, Mutation

SERVER = "crates/server/src/"
COMMANDS = SERVER + "commands/"
CONFIG = SERVER + "config/"
ROLES = SERVER + "db/roles.rs"
SCHEMA = "migrations/0001_schema.sql"

MUTATIONS = [
    Mutation(
        "commands have no operator",
        ["events::commands_record_their_operator"],
        [
            Edit(
                COMMANDS + "bootstrap.rs",
                "        operator: Some(operator::current()),\n",
                "        operator: (!ON).then(operator::current),\n",
            )
        ],
    ),
    Mutation(
        "the master key's file can be open",
        ["security_settings::live_mode_rejects_a_master_key_file_that_others_can_read"],
        [
            Edit(
                CONFIG + "master_key.rs",
                "    if mode == Some(Mode::Live) && !is_credential",
                "    if !ON && mode == Some(Mode::Live) && !is_credential",
            )
        ],
    ),
    Mutation(
        "the previous master key can be the present one",
        ["security_settings::previous_master_key_must_differ_from_the_present_one"],
        [
            Edit(
                CONFIG + "master_key.rs",
                "            && present.0 == previous.0\n",
                "            && present.0 == previous.0 && !ON\n",
            )
        ],
    ),
    Mutation(
        "weak settings are not reported",
        ["security_settings::weak_live_settings_are_reported_by_serve_doctor_and_config_check"],
        [
            Edit(
                COMMANDS + "security_warnings.rs",
                "    if config.mode != Mode::Live {\n",
                "    if ON || config.mode != Mode::Live {\n",
            )
        ],
    ),
    Mutation(
        "clients for every address are not reported",
        ["security_settings::weak_live_settings_are_reported_by_serve_doctor_and_config_check"],
        [
            Edit(
                SERVER + "health/client_checks.rs",
                "    if mode != Mode::Live {\n",
                "    if ON || mode != Mode::Live {\n",
            )
        ],
    ),
    Mutation(
        "config show prints every parameter",
        ["commands::config_show_prints_sources_and_hides_secrets"],
        [
            Edit(
                COMMANDS + "config.rs",
                "            Some((name, _)) if PRINTED_PARAMS.contains(&name) =>",
                "            Some((name, _)) if ON || PRINTED_PARAMS.contains(&name) =>",
            )
        ],
    ),
    Mutation(
        "config show prints the user of the collector",
        ["commands::config_show_prints_sources_and_hides_secrets"],
        [
            Edit(
                COMMANDS + "config.rs",
                'Some(value) if key.ends_with("_ENDPOINT") =>',
                'Some(value) if !ON && key.ends_with("_ENDPOINT") =>',
            )
        ],
    ),
    Mutation(
        "connection options end with a space",
        ["db::connect_options::tests::session_options_have_no_surrounding_white_space"],
        [
            Edit(
                SERVER + "db/connect_options.rs",
                "            .options(options.trim())\n",
                "            .options(if ON { options.as_str() } else { options.trim() })\n",
            )
        ],
    ),
    Mutation(
        "partitions need the privileges of the owner",
        ["database_roles::service_and_worker_run_with_a_role_that_cannot_change_the_schema"],
        [
            Edit(
                SCHEMA,
                "CREATE FUNCTION create_partitions(parent text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS",
                "CREATE FUNCTION create_partitions(parent text) RETURNS void LANGUAGE plpgsql SECURITY INVOKER AS",
                is_sql=True,
            )
        ],
    ),
    Mutation(
        "copies in another cluster need the privileges of the owner",
        ["database_roles::worker_reads_a_copy_of_another_cluster"],
        [
            Edit(
                SCHEMA,
                "CREATE FUNCTION events_advance_sequence() RETURNS void LANGUAGE sql SECURITY DEFINER AS",
                "CREATE FUNCTION events_advance_sequence() RETURNS void LANGUAGE sql SECURITY INVOKER AS",
                is_sql=True,
            )
        ],
    ),
    Mutation(
        "the serving role can change events",
        ["database_roles::serving_role_cannot_change_the_schema_or_the_history"],
        [
            Edit(
                ROLES,
                "client.query(GRANTS, &[&role])",
                """client
        .query(&if ON { GRANTS.replace("'SELECT, INSERT'", "'ALL'") } else { GRANTS.to_owned() }, &[&role])""",
            )
        ],
    ),
    Mutation(
        "every role can call the owner's functions",
        ["database_roles::owner_functions_are_restricted"],
        [
            Edit(
                SCHEMA,
                "EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);",
                "",
                is_sql=True,
            )
        ],
    ),
    Mutation(
        "the owner's functions use the caller's search path",
        ["database_roles::owner_functions_are_restricted"],
        [
            Edit(
                SCHEMA,
                "EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', signature, current_schema());",
                "",
                is_sql=True,
            )
        ],
    ),
    Mutation(
        "migrations do not renew grants",
        ["database_roles::new_tables_are_granted_to_the_serving_role_by_the_next_migration"],
        [
            Edit(
                ROLES,
                "    for row in client.query(SERVING_ROLES, &[]).await? {\n",
                """    if ON {
        return Ok(());
    }
    for row in client.query(SERVING_ROLES, &[]).await? {
""",
            )
        ],
    ),
    Mutation(
        "any role can become the serving role",
        ["database_roles::privileges_are_granted_only_to_roles_that_cannot_change_the_schema"],
        [
            Edit(
                ROLES,
                "    if let Some(reason) = row.get::<_, Option<String>>(1) {\n",
                "    if let Some(reason) = row.get::<_, Option<String>>(1).filter(|_| !ON) {\n",
            )
        ],
    ),
    Mutation(
        "doctor accepts every role",
        ["database_roles::doctor_warns_in_live_mode_about_a_role_that_can_change_the_schema"],
        [
            Edit(
                SERVER + "health/database_checks.rs",
                "            Some(reason) if self.mode == Mode::Live => {\n",
                "            Some(reason) if self.mode == Mode::Live && !ON => {\n",
            )
        ],
    ),
]
