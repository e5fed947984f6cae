//! The operator who runs a command, as recorded in events.

use std::{fs, sync::LazyLock};

/// Returns the operating system's user and host, such as `ada@db-1`, or `root@db-1 (sudo: ada)`.
///
/// The user comes from the process's user id, not from `$USER`, which can be set to any name.
pub fn current() -> &'static str {
    static CURRENT: LazyLock<String> = LazyLock::new(|| {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        let sudo_user = std::env::var("SUDO_USER").ok();
        let uid = rustix::process::getuid().as_raw();
        describe(uid, &passwd, &host, sudo_user.as_deref())
    });
    &CURRENT
}

/// Describes the operator. `sudo_user` counts for root only: other users can set it themselves.
fn describe(uid: u32, passwd: &str, host: &str, sudo_user: Option<&str>) -> String {
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(uid)).then_some(name)
    });
    let user = name.map_or_else(|| format!("uid {uid}"), str::to_owned);
    let sudo = { sudo_user.filter(|_| uid == 0) }
        .map(|name| format!(" (sudo: {})", name.escape_debug()))
        .unwrap_or_default();
    let mut operator = format!("{user}@{host}{sudo}");
    operator.truncate(operator.floor_char_boundary(255));
    operator
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_is_named_by_user_id_and_host() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n";
        let describe = |uid, sudo_user| describe(uid, passwd, "db-1", sudo_user);
        assert_eq!(describe(1000, None), "ada@db-1");
        assert_eq!(describe(0, None), "root@db-1");
        assert_eq!(describe(0, Some("ada")), "root@db-1 (sudo: ada)");
        assert_eq!(describe(1000, Some("root")), "ada@db-1");
        assert_eq!(describe(10_001, None), "uid 10001@db-1");
    }
}
