# SPDX-License-Identifier: Apache-2.0
#
# Prints what pyproject.toml says that an app needs, as lines of requirements. Apps are run where they are and often are
# no packages that pip could build, so they are not installed as such for the sake of what they need. Only where a build
# backend alone can tell does it print the app itself.
import re

try:
    import tomllib
except ImportError:  # Python before 3.11
    from pip._vendor import tomli as tomllib


def upper(numbers, at):
    return ".".join(map(str, numbers[:at] + [numbers[at] + 1]))


def poetry_range(text):
    """A range of Poetry as one of pip: "^1.2" is >=1.2,<2; "~1.2" is >=1.2,<1.3."""
    text = text.strip()
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if text == "*" or not numbers:
        return ""
    if text[0] == "^":
        first = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
        return f">={text[1:].strip()},<{upper(numbers, first)}"
    if text[0] == "~" and text[1:2] != "=":
        return f">={text[1:].strip()},<{upper(numbers, min(1, len(numbers) - 1))}"
    return f"=={text}" if text[0].isdigit() else text


def poetry_requirement(name, said):
    """A line for an entry of [tool.poetry.dependencies]; None if there is none."""
    if isinstance(said, list):  # one for each platform
        said = {}
    said = said if isinstance(said, dict) else {"version": said}
    if name == "python" or said.get("optional"):
        return None
    if "path" in said:
        return f"./{said['path']}"
    name += f"[{','.join(said['extras'])}]" if "extras" in said else ""
    if "git" in said:
        commit = said.get("rev") or said.get("tag") or said.get("branch")
        line = f"{name} @ git+{said['git']}" + (f"@{commit}" if commit else "")
    elif "url" in said:
        line = f"{name} @ {said['url']}"
    else:
        version = said.get("version", "*")
        ranges = [] if "|" in version else map(poetry_range, version.split(","))
        line = name + ",".join(filter(None, ranges))
    return line + (f" ; {said['markers']}" if "markers" in said else "")


def needs(made):
    project = made.get("project", {})
    if "dependencies" in project.get("dynamic", []):
        return ["."]
    if "dependencies" in project:
        return project["dependencies"]
    poetry = made.get("tool", {}).get("poetry", {}).get("dependencies", {})
    return filter(None, (poetry_requirement(*entry) for entry in poetry.items()))


with open("pyproject.toml", "rb") as file:
    print(*needs(tomllib.load(file)), sep="\n")
