"""Checks JSON against the schemas of scenarios/report/schema.

What of JSON Schema those use, and no more; a keyword that is not known here is
an error. Stricter than the standard in one thing: a key that no schema
describes is an error, so that the schemas keep up with what is written.
"""

import json
import pathlib
import re

FOLDER = (pathlib.Path(__file__).resolve().parents[2]
          / "scenarios" / "report" / "schema")
TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
NOTES = {"$schema", "$id", "$defs", "title", "description"}


def load(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


class Checker:
    def __init__(self, name):
        self.files = {}
        self.name = name

    def file(self, name):
        if name not in self.files:
            self.files[name] = load(name)
        return self.files[name]

    def resolve(self, reference, name):
        """The schema that a reference means, and the file that it is in."""
        file, _, pointer = reference.partition("#")
        file = file or name
        schema = self.file(file)
        for part in pointer.strip("/").split("/"):
            schema = schema[part] if part else schema
        return schema, file

    def errors(self, value):
        return self.check(value, self.file(self.name), self.name, "")

    def described(self, schema, name):
        """Keys of an object, with those of the schemas that it is all of."""
        keys = set(schema.get("properties", {}))
        for part in schema.get("allOf", []):
            keys |= self.described(part, name)
        if "$ref" in schema:
            keys |= self.described(*self.resolve(schema["$ref"], name))
        return keys

    def check(self, value, schema, name, path, known=frozenset()):
        """What is wrong, a line each. `known`: keys described elsewhere."""
        found = []
        keys = self.described(schema, name) | known
        for keyword, says in schema.items():
            if keyword in NOTES or keyword in ("then", "else"):
                continue
            check = getattr(self, "on_" + keyword.strip("$"), None)
            if check is None:
                raise ValueError(f"{name}: keyword {keyword} is not known")
            found += check(value, says, schema, name, path, keys)
        return found

    def on_ref(self, value, says, _, name, path, keys):
        return self.check(value, *self.resolve(says, name), path, keys)

    def on_type(self, value, says, *rest):
        types = [says] if isinstance(says, str) else says
        if any(TYPES[kind](value) for kind in types):
            return []
        return [f"{rest[2]}: expected {' or '.join(types)}, got {value!r:.60}"]

    def on_const(self, value, says, *rest):
        return [] if value == says else [f"{rest[2]}: {value!r} is not {says!r}"]

    def on_enum(self, value, says, *rest):
        return [] if value in says else [f"{rest[2]}: {value!r} is not in {says}"]

    def on_pattern(self, value, says, *rest):
        if isinstance(value, str) and not re.search(says, value):
            return [f"{rest[2]}: {value!r} is not {says}"]
        return []

    def on_minimum(self, value, says, *rest):
        if isinstance(value, (int, float)) and value < says:
            return [f"{rest[2]}: {value!r} is below {says}"]
        return []

    def on_required(self, value, says, *rest):
        if not isinstance(value, dict):
            return []
        return [f"{rest[2]}.{key}: missing" for key in says if key not in value]

    def on_properties(self, value, says, schema, name, path, keys):
        if not isinstance(value, dict):
            return []
        found = []
        for key, item in value.items():
            if key in says:
                found += self.check(item, says[key], name, f"{path}.{key}")
            elif key not in keys and "additionalProperties" not in schema:
                found.append(f"{path}.{key}: in no schema")
        return found

    def on_additionalProperties(self, value, says, schema, name, path, _):
        named = schema.get("properties", {})
        found = []
        for key, item in value.items():
            if key not in named:
                found += self.check(item, says, name, f"{path}.{key}")
        return found

    def on_items(self, value, says, _, name, path, __):
        if not isinstance(value, list):
            return []
        found = []
        for i, item in enumerate(value):
            found += self.check(item, says, name, f"{path}[{i}]")
        return found

    def on_allOf(self, value, says, _, name, path, keys):
        return [e for part in says
                for e in self.check(value, part, name, path, keys)]

    def on_anyOf(self, value, says, _, name, path, keys):
        tries = [self.check(value, part, name, path, keys) for part in says]
        return [] if [] in tries else min(tries, key=len)

    def on_if(self, value, says, schema, name, path, keys):
        holds = not self.check(value, says, name, path, keys)
        then = schema.get("then" if holds else "else", {})
        return self.check(value, then, name, path, keys)


def errors_of(answer):
    """Of an answer by the schema that it names."""
    name, version = answer["schema"].removeprefix("trainfare.").split("/")
    return Checker(f"{name}.{version}.schema.json").errors(answer)


def numbers_of(schema):
    """The names of all numbers that a schema describes."""
    for key, item in schema.get("properties", {}).items():
        types = item.get("type", [])
        if {"number", "integer"} & ({types} if isinstance(types, str)
                                    else set(types)):
            yield key
    for item in schema.values():
        for part in item if isinstance(item, list) else [item]:
            if isinstance(part, dict):
                yield from numbers_of(part)
