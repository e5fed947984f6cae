"""Exports the documentation as static files, and checks them.

Starts a sandbox, follows the links of its `/docs` pages, and writes each page and file with relative links. The folder works on any
web server, in any subfolder, and opened from the disk. It has no API explorer, which needs a running service; `openapi.json` is
in its place.

Every link must lead to a file of the folder, every anchor to a heading, and no page may load anything else. Links, anchors and
pictures of the Markdown files outside of `docs/` are checked too, in the repository. Then Chromium opens pages from the disk and from a
subfolder of a web server, at 390 and 1440 pixels, in light and dark, and searches. `--quick` omits this.
"""

import http.server
import itertools
import json
import posixpath
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from functools import cache, partial
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import urlopen

from harness import ROOT, Failed, browse, check, free_ports, group, new_folder, sandbox

START = "/docs/contents"
INDEX = "index.html"
ALIASES = {"/": INDEX, START: INDEX, "/docs/README": INDEX, "/openapi.json": "openapi.json"}
EXPLORER_LINK = '<a href="/docs/">API explorer</a>'
# Text has `&lt;` instead of `<`, so code that is shown contains no tag.
TAG = re.compile(r"<[a-z][^<>]*>")
LINK = re.compile(r'(?<=\s)(href|src|srcset)="([^"]*)"')
# What changes in the script of the pages, because browsers do not read JSON from the disk: (before, after).
SCRIPT_CHANGES = [
    ('"use strict";\n', '"use strict";\nconst siteRoot = document.currentScript.src;\n'),
    (
        'fetch("/docs/search.json").then((response) => response.json())',
        'new Promise((resolve, reject) => {\n'
        '    const loaded = () => resolve(searchIndex.map(([url, ...texts]) => [new URL(url, siteRoot).href, ...texts]));\n'
        '    document.head.append(element("script", { src: new URL("search.js", siteRoot).href, onload: loaded, onerror: reject }));\n'
        '  })',
    ),
    ("url.endsWith(word)", "url.endsWith(`${word}.html`)"),
]


def file_of(path):
    """Returns the file that a path of the service is written to."""
    if path in ALIASES:
        return ALIASES[path]
    if not path.startswith("/docs/") or path == "/docs/":
        raise Failed(f"{path} is not a page or file of the documentation")
    name = path.removeprefix("/docs/")
    return name if "." in posixpath.basename(name) else f"{name}.html"


def read(url):
    with urlopen(url) as response:
        return response.read()


class Exporter:
    """Follows the links of a running service, and collects the files of the export."""

    def __init__(self, service):
        self.service = service
        self.files = {}
        self.queue = [START]

    def run(self):
        """Returns the content of each file."""
        done = set()
        while self.queue:
            path = self.queue.pop()
            name = file_of(path)
            if name in done:
                continue
            done.add(name)
            content = read(self.service + (START if name == INDEX else path))
            if name.endswith(".html"):
                content = self.relative_page(path, content.decode()).encode()
            self.files[name] = content
        self.files["site.js"] = changed_script(self.files["site.js"].decode()).encode()
        self.files["search.js"] = self.search_index().encode()
        return self.files

    def relative_page(self, path, page):
        """Returns a page with relative links, and queues their targets."""
        if page.count(EXPLORER_LINK) != 1:
            raise Failed(f"{path} has no link to the API explorer in its header")
        page = page.replace(EXPLORER_LINK, '<a href="/openapi.json">OpenAPI</a>')
        folder = posixpath.dirname(file_of(path))
        base = self.service + (START if file_of(path) == INDEX else path)

        def relative(match):
            attribute, link = match.groups()
            target = urlsplit(urljoin(base, link.replace("&amp;", "&")))
            if f"{target.scheme}://{target.netloc}" != self.service:
                return match.group()
            if link.startswith("#"):
                return match.group()
            self.queue.append(target.path)
            anchor = f"#{target.fragment}" if target.fragment else ""
            return f'{attribute}="{posixpath.relpath(file_of(target.path), folder or ".")}{anchor}"'

        return TAG.sub(lambda tag: LINK.sub(relative, tag.group()), page)

    def search_index(self):
        """Returns a script with the search index of the pages."""
        entries = []
        for url, *texts in json.loads(read(f"{self.service}/docs/search.json")):
            path, _, anchor = url.partition("#")
            if path != "/docs/":
                entries.append([file_of(path) + (f"#{anchor}" if anchor else ""), *texts])
        return f"const searchIndex = {json.dumps(entries, ensure_ascii=False, separators=(',', ':'))};\n"


def changed_script(script):
    for before, after in SCRIPT_CHANGES:
        if script.count(before) != 1:
            raise Failed(f"site.js does not contain {before!r} once")
        script = script.replace(before, after)
    return script


class PageReader(HTMLParser):
    """Collects the ids, links and loaded files of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name == "href" and tag == "a":
                self.links.append(value)
            elif name in ("src", "href", "srcset"):
                self.loads.append(value.split(" ")[0])


def find_problems(out):
    """Returns what is wrong in an exported folder, and the numbers of pages and of links."""
    pages = {str(path.relative_to(out)): PageReader(path.read_text()) for path in out.rglob("*.html")}
    found, links, reached = [], 0, {INDEX}
    entries = json.loads((out / "search.js").read_text().removeprefix("const searchIndex = ").removesuffix(";\n"))
    targets = [("search.js", entry[0], True) for entry in entries]
    for name, page in pages.items():
        targets += [(name, link, True) for link in page.links] + [(name, link, False) for link in page.loads]
    for name, link, is_link in targets:
        parts = urlsplit(link)
        if parts.scheme in ("http", "https", "mailto") and is_link:
            continue
        if parts.scheme or parts.netloc or parts.path.startswith("/"):
            found.append(f"{name}: {link} is not relative")
            continue
        links += 1
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
        if target.startswith("..") or not (out / target).is_file():
            found.append(f"{name}: {link} leads to no file")
        elif parts.fragment and unquote(parts.fragment) not in pages[target].ids:
            found.append(f"{name}: {link} leads to no anchor")
        elif name != "search.js":
            reached.add(target)
    for style in out.rglob("*.css"):
        found += [f"{style.name}: loads {load}" for load in re.findall(r"url\([^)]*\)|@import[^;]*", style.read_text())]
    found += [f"{path.relative_to(out)} is empty" for path in out.rglob("*") if path.is_file() and not path.stat().st_size]
    found += [f"{name}: no page links to it" for name in pages if name not in reached]
    return found, len(pages), links


@cache
def heading_ids(path):
    """Returns the anchors that a repository host gives the headings of a Markdown file."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    ids = set()
    for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().replace(" ", "-")
        name = "".join(character for character in heading if character.isalnum() or character in "-_")
        numbered = (f"{name}-{number}" for number in itertools.count(1))
        ids.add(name if name not in ids else next(other for other in numbered if other not in ids))
    return ids


def find_repository_problems():
    """Returns the links, anchors and pictures of Markdown files outside of docs/ that lead to nothing, and the number of all."""
    listed = subprocess.run(["git", "ls-files", "*.md", ":!docs"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found, links = [], 0
    for name in listed.split():
        text = re.sub(r"^```.*?^```", "", (ROOT / name).read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text):
            path, _, anchor = link.partition("#")
            if "://" in path or path.startswith("mailto:"):
                continue
            links += 1
            target = ROOT / posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else ROOT / name
            if not target.exists():
                found.append(f"{name}: {link} leads to no file")
            elif anchor and target.suffix == ".md" and anchor not in heading_ids(target):
                found.append(f"{name}: {link} leads to no anchor")
    return found, links


# A page, and what each broken version of it contains instead of a link to itself.
SAMPLE = '<h1 id="a">A</h1><a href="index.html#a">A</a><img src="b.svg">'
BROKEN = {
    "leads to no file": '<a href="c.html">',
    "leads to no anchor": '<a href="#c">',
    "is not relative": '<a href="/docs/c">',
    "https://example.com/c.js is not relative": '<script src="https://example.com/c.js">',
    "../c.html leads to no file": '<a href="../c.html">',
}


def self_test():
    """Checks that the sample has no problem, and each broken version of it one."""
    with new_folder("site") as out:
        (out / "b.svg").write_text("<svg/>")
        (out / "search.js").write_text('const searchIndex = [["index.html#a","A","A","text"]];\n')
        for expected, broken in [(None, ""), *BROKEN.items()]:
            (out / INDEX).write_text(SAMPLE + broken)
            found = find_problems(out)[0]
            is_right = len(found) == 1 and found[0].endswith(expected) if expected else not found
            check(is_right, f"{broken or 'the sample'}: {found}")
        (out / INDEX).write_text(SAMPLE)
        (out / "alone.html").write_text("<p>")
        (out / "b.svg").write_text("")
        (out / "search.js").write_text('const searchIndex = [["index.html#c","A","A","text"]];\n')
        found = find_problems(out)[0]
        check(len(found) == 3, found)


@contextmanager
def served(folder):
    """Serves a folder and yields its URL."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_ports(1)[0]), partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def export(options, out):
    """Writes the exported documentation."""
    if out.exists() and any(out.iterdir()) and not (out / "search.js").exists():
        raise Failed(f"{out} has other files")
    with sandbox(options) as service:
        files = Exporter(service.url).run()
    shutil.rmtree(out, ignore_errors=True)
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    return files


def run_site(options):
    out = options.out.resolve()
    with group("links"):
        files = export(options, out)
        found, pages, links = find_problems(out)
        in_repository, others = find_repository_problems()
        found += in_repository
        print(f"  {out}: {pages} pages, {len(files)} files, {sum(map(len, files.values())):,} bytes")
        check(not found, "\n".join(["broken links:", *found]), number=links + others)
    if not options.quick:
        with served(out.parent) as url:
            browse("site.mjs", options, places=[f"{out.as_uri()}/", f"{url}/{out.name}/"])
