//! Renders the Markdown of `docs/` as HTML, and splits it into sections for the search index.

use std::collections::BTreeMap;

use anyhow::Context;
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html,
};

use super::{examples, layout::escape};

/// The name of each diagram in `docs/diagrams/`, without its extension, and its SVG.
pub(super) static DIAGRAMS: &[(&str, &str)] =
    include!(concat!(env!("OUT_DIR"), "/docs_diagrams.rs"));

/// A Markdown text as HTML.
pub(super) struct RenderedMarkdown {
    pub html: String,
    pub headings: Vec<PageHeading>,
}

#[derive(Debug, Clone)]
pub(super) struct PageHeading {
    pub level: HeadingLevel,
    /// The anchor that GitHub gives the heading.
    pub id: String,
    pub text: String,
}

/// A heading and the text below it.
pub(super) struct PageSection {
    pub heading: PageHeading,
    pub text: String,
}

/// Renders Markdown with heading ids, links to other pages, and diagrams as images.
pub(super) fn render(text: &str) -> anyhow::Result<RenderedMarkdown> {
    let mut events = parse(text);
    let headings = add_heading_ids(&mut events);
    let events = replace_diagrams(events)?;
    let events = events.into_iter().map(|event| match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            dest_url: link_target(link_type, &dest_url),
            link_type,
            title,
            id,
        }),
        other => other,
    });
    let mut output = String::new();
    html::push_html(&mut output, events);
    // A table that is wider than the page scrolls. A header cell without text is no header. The content
    // security policy forbids inline style.
    let output = output
        .replace(" style=\"text-align: left\"", "")
        .replace(" style=\"text-align: right\"", " class=\"right\"")
        .replace(" style=\"text-align: center\"", " class=\"center\"")
        .replace("<table>", "<div class=\"table\"><table>")
        .replace("</table>", "</table></div>")
        .replace("<th></th>", "<td></td>")
        .replace("<th class=\"right\"></th>", "<td></td>");
    Ok(RenderedMarkdown {
        html: output,
        headings,
    })
}

/// Returns the sections of a Markdown text as plain text. Text before the first heading is left out.
pub(super) fn sections(text: &str) -> Vec<PageSection> {
    let mut events = parse(text);
    let mut headings = add_heading_ids(&mut events).into_iter();
    let mut sections: Vec<PageSection> = Vec::new();
    let mut in_heading = false;
    for event in &events {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                in_heading = true;
                sections.extend(headings.next().map(|heading| PageSection {
                    heading,
                    text: String::new(),
                }));
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            _ if in_heading => {}
            Event::Text(part) | Event::Code(part) => {
                if let Some(section) = sections.last_mut() {
                    section.text.push_str(part);
                }
            }
            Event::SoftBreak
            | Event::HardBreak
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell) => {
                if let Some(section) = sections.last_mut() {
                    section.text.push(' ');
                }
            }
            _ => {}
        }
    }
    sections
}

/// Returns the links in the lists below each heading of the second level.
pub(super) fn link_lists(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut lists: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut target = None;
    let (mut in_heading, mut in_list) = (false, false);
    for event in parse(text) {
        match event {
            Event::Start(Tag::Heading {
                level: HeadingLevel::H2,
                ..
            }) => {
                in_heading = true;
                lists.push((String::new(), Vec::new()));
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Start(Tag::List(_)) => in_list = true,
            Event::End(TagEnd::List(_)) => in_list = false,
            Event::Start(Tag::Link { dest_url, .. }) if in_list => {
                target = Some(dest_url.trim_end_matches(".md").to_owned());
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some((title, links)) = lists.last_mut() {
                    if in_heading {
                        title.push_str(&part);
                    } else if let Some(path) = target.take() {
                        links.push((path, part.to_string()));
                    }
                }
            }
            _ => {}
        }
    }
    lists
}

fn parse(text: &str) -> Vec<Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES).collect()
}

/// Replaces each Mermaid block by the SVG that the comment before it names:
/// `<!-- diagram: subscription-states -->`.
fn replace_diagrams(events: Vec<Event<'_>>) -> anyhow::Result<Vec<Event<'_>>> {
    let mut output = Vec::with_capacity(events.len());
    let mut name: Option<String> = None;
    let mut in_diagram = false;
    for event in events {
        match &event {
            Event::Html(comment) => {
                let comment = comment.trim().strip_prefix("<!-- diagram: ");
                name = comment
                    .and_then(|rest| rest.strip_suffix(" -->"))
                    .map(str::to_owned);
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if &**language == "mermaid" =>
            {
                let name = name.take();
                let name = name.context("a mermaid block has no diagram comment before it")?;
                output.push(Event::Html(image(&name)?.into()));
                in_diagram = true;
            }
            Event::End(TagEnd::CodeBlock) if in_diagram => {
                in_diagram = false;
                continue;
            }
            _ => {}
        }
        if !in_diagram {
            output.push(event);
        }
    }
    Ok(output)
}

/// Returns the image of a diagram, with the SVG's `<desc>` as its alternative text.
fn image(name: &str) -> anyhow::Result<String> {
    let diagram = DIAGRAMS.iter().find(|(other, _)| *other == name);
    let (_, svg) = diagram.with_context(|| format!("docs/diagrams/{name}.svg does not exist"))?;
    let description = svg
        .split_once("<desc")
        .and_then(|(_, rest)| rest.split_once('>'))
        .and_then(|(_, rest)| rest.split_once("</desc>"))
        .map_or(name, |(description, _)| description.trim());
    Ok(format!(
        "<p><img src=\"/docs/diagrams/{name}.svg\" alt=\"{}\"></p>\n",
        description.replace('"', "&quot;")
    ))
}

/// Gives each heading the id that GitHub gives it, and returns all headings.
fn add_heading_ids(events: &mut [Event<'_>]) -> Vec<PageHeading> {
    let mut headings: Vec<PageHeading> = Vec::new();
    let mut uses: BTreeMap<String, u32> = BTreeMap::new();
    let mut text = String::new();
    let mut in_heading = false;
    // Backwards, so that the text is known when the start tag is reached.
    for event in events.iter_mut().rev() {
        match event {
            Event::End(TagEnd::Heading(_)) => {
                in_heading = true;
                text.clear();
            }
            Event::Text(part) | Event::Code(part) if in_heading => text.insert_str(0, part),
            Event::Start(Tag::Heading { level, .. }) => {
                in_heading = false;
                headings.push(PageHeading {
                    level: *level,
                    id: slug(&text),
                    text: text.clone(),
                });
            }
            _ => {}
        }
    }
    headings.reverse();
    // The second heading with the same text gets `-1`, the third `-2`.
    for heading in &mut headings {
        let count = uses.entry(heading.id.clone()).or_default();
        if *count > 0 {
            heading.id = format!("{}-{count}", heading.id);
        }
        *count += 1;
    }
    let mut ids = headings.iter().map(|heading| heading.id.clone());
    for event in events.iter_mut() {
        if let Event::Start(Tag::Heading { id, .. }) = event {
            *id = ids.next().map(CowStr::from);
        }
    }
    headings
}

fn slug(text: &str) -> String {
    let characters = text.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    characters.collect()
}

/// Rewrites a link to another Markdown file or a script as a link to where it is served. Other links
/// are unchanged.
fn link_target<'a>(kind: LinkType, link: &str) -> CowStr<'a> {
    if kind == LinkType::Email || link.contains("://") || link.starts_with('#') {
        return link.to_owned().into();
    }
    let (folder, served_folder) = examples::FOLDERS;
    if let Some(script) = link.strip_prefix(folder) {
        return format!("{served_folder}{script}").into();
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = path.strip_suffix(".md").unwrap_or(path);
    let anchor = if anchor.is_empty() {
        String::new()
    } else {
        format!("#{anchor}")
    };
    format!("{path}{anchor}").into()
}

/// Returns a list of links to the headings of the second level, or nothing if there is only one.
pub(super) fn outline(headings: &[PageHeading]) -> String {
    let links: Vec<String> = headings
        .iter()
        .filter(|heading| heading.level == HeadingLevel::H2)
        .map(|heading| {
            let text = escape(&heading.text);
            format!("<li><a href=\"#{}\">{text}</a></li>", heading.id)
        })
        .collect();
    if links.len() < 2 {
        return String::new();
    }
    format!(
        "<nav class=\"outline\" aria-labelledby=\"outline\"><p id=\"outline\">On this page</p><ul>{}</ul></nav>",
        links.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mermaid_block_becomes_the_named_image() {
        let text = "a\n\n<!-- diagram: subscription-states -->\n```mermaid\nx --> y\n```\n\nb\n";
        let html = render(text).unwrap().html;
        assert!(html.contains("<img src=\"/docs/diagrams/subscription-states.svg\" alt=\""));
        assert!(
            !html.contains("mermaid") && !html.contains("x --"),
            "{html}"
        );
        assert!(
            html.contains("<p>a</p>") && html.contains("<p>b</p>"),
            "{html}"
        );
    }

    #[test]
    fn mermaid_block_without_a_name_is_an_error() {
        assert!(render("```mermaid\nx --> y\n```\n").is_err());
        assert!(render("<!-- diagram: missing -->\n```mermaid\nx\n```\n").is_err());
    }

    #[test]
    fn repeated_headings_have_different_ids() {
        let page = render("# A `b`\n\n## Options\n\n## Options\n").unwrap();
        for id in ["id=\"a-b\"", "id=\"options\"", "id=\"options-1\""] {
            assert!(page.html.contains(id), "{id}: {}", page.html);
        }
    }

    #[test]
    fn sections_hold_the_text_below_each_heading() {
        let sections = sections("# A\n\none `two`\nthree\n\n## B\n\n- x\n- y\n\n```\ncode\n```\n");
        let texts: Vec<(&str, &str)> = { sections.iter() }
            .map(|section| (section.heading.id.as_str(), section.text.trim()))
            .collect();
        assert_eq!(texts, [("a", "one two three"), ("b", "x y code")]);
    }
}
