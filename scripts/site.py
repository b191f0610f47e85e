"""Hook of mkdocs.yml: links of pages to folders and sources become links to pages of the site."""

import os
import re
import subprocess

from mkdocs.structure.files import File, InclusionLevel

LINK = re.compile(r"\]\(([^):#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(?ms)^```.*?^```$|`[^`\n]+`")


def tracked():
    """Returns the files of the repository, those that are not committed yet too."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return [f for f in listed.stdout.splitlines() if os.path.isfile(f)]


def on_files(files, config):
    """Adds a page for each folder and each source that a page links to."""
    for page in [f for f in files if f.src_uri.endswith(".md")]:
        for path in links(page):
            if os.path.isdir(path) and not os.path.exists(path + "/index.md"):
                inside = [f for f in tracked() if f.startswith(path + "/")]
                add(files, config, path + "/index.md", f"# {path}\n\n" + "\n".join(f"- `{f}`" for f in inside))
            elif os.path.isfile(path) and os.path.splitext(path)[1] in SOURCES:
                with open(path, encoding="utf-8") as text:
                    add(files, config, path + ".md", f"# {path}\n\n````\n{text.read()}\n````\n")
    return files


SOURCES = {"", ".cff", ".go", ".cu", ".cuh", ".sh", ".tmpl"}


def links(page):
    folder = os.path.dirname(page.src_uri)
    for path, _ in LINK.findall(CODE.sub("", page.content_string)):
        yield os.path.normpath(os.path.join(folder, path))


def add(files, config, uri, text):
    if files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, content=text, inclusion=InclusionLevel.NOT_IN_NAV))


def on_page_markdown(markdown, page, **_):
    def target(link):
        path = os.path.normpath(os.path.join(os.path.dirname(page.file.src_uri), link.group(1)))
        if os.path.isdir(path):
            return f"]({link.group(1)}/index.md{link.group(2) or ''})"
        if os.path.splitext(path)[1] in SOURCES:
            return f"]({link.group(1)}.md{link.group(2) or ''})"
        return link.group(0)

    parts, last = [], 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(target, markdown[last : code.start()]), code.group(0)]
        last = code.end()
    return "".join(parts) + LINK.sub(target, markdown[last:])
