"""Reads docs/schemas and finds the faults that an object has by them."""

import json
import re

import jsonschema


def declaring(schema, field):
    """The schemas that one has for a field; `additionalProperties` is for those without."""
    own = [schema["properties"][field]] if field in schema.get("properties", ()) else []
    own += [part for text, part in schema.get("patternProperties", {}).items() if re.search(text, field)]
    if not own and "additionalProperties" in schema:
        own.append(schema["additionalProperties"])
    return own


def takes_all(schema):
    """True of a schema that has no condition: fields below it are free."""
    return schema is True or not schema.keys() - {"description"}


class Schemas:
    """The files of a folder: FORMAT-VERSION.json for objects, others for what these share."""

    def __init__(self, folder):
        self.files = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
        for name, schema in self.files.items():
            jsonschema.Draft202012Validator.check_schema(schema)
            if schema.get("$schema") != "https://json-schema.org/draft/2020-12/schema":
                raise ValueError(f"{name}: its draft is not 2020-12")

    def formats(self):
        """The formats that have a schema: attnscope-stats/1."""
        return {
            name.removesuffix(".json").replace("-1", "/1")
            for name in self.files
            if name.startswith("attnscope-")
        }

    def error_kinds(self):
        return set(self.files["attnscope-error-1.json"]["properties"]["kind"]["enum"])

    def faults(self, answer):
        """Lists the faults of an object, a line each."""
        form = str(answer.get("format"))
        name = form.replace("/", "-") + ".json"
        if name not in self.files:
            return [f"{form} has no schema"]
        validator = self.validator(name, self.files[name])
        faults = [
            f"{form}: {'.'.join(map(str, error.absolute_path))}: {error.message[:300]}"
            for error in validator.iter_errors(answer)
        ]
        return faults or sorted(
            {f"{form}: {place}: no schema names it" for place in self.undeclared(name, answer)}
        )

    def validator(self, name, schema):
        store = {f"file:///{own}": text for own, text in self.files.items()}
        resolver = jsonschema.RefResolver(f"file:///{name}", self.files[name], store=store)
        return jsonschema.Draft202012Validator(schema, resolver=resolver)

    def undeclared(self, name, answer):
        """The fields of a valid object that no schema names, as places: heads.entropyy."""
        return self.walk([(name, self.files[name])], answer, "")

    def applied(self, name, schema, value):
        """The schemas, with their files, that describe the value: references are followed, and of
        alternatives those that hold are taken."""
        yield name, schema
        if "$ref" in schema:
            yield from self.applied(*self.referred(name, schema["$ref"]), value)
        for part in schema.get("allOf", ()):
            yield from self.applied(name, part, value)
        for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            if self.validator(name, part).is_valid(value):
                yield from self.applied(name, part, value)

    def referred(self, name, reference):
        file, _, pointer = reference.partition("#")
        schema = self.files[file or name]
        for step in filter(None, pointer.split("/")):
            schema = schema[step]
        return file or name, schema

    def walk(self, schemas, value, place):
        every = [own for name, schema in schemas for own in self.applied(name, schema, value)]
        if isinstance(value, list):
            items = [(name, own["items"]) for name, own in every if "items" in own]
            for item in value:
                yield from self.walk(items, item, place)
        if not isinstance(value, dict):
            return
        for field, inner in value.items():
            where = f"{place}.{field}" if place else field
            declared = [(n, own) for n, schema in every for own in declaring(schema, field)]
            if any(takes_all(own) for _, own in declared):
                continue
            if declared:
                yield from self.walk(declared, inner, where)
            else:
                yield where
