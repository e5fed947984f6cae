//! Gives every build of the workspace the same features of its dependencies; see `Cargo.toml`.
