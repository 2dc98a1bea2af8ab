"""Constrained output: every answer keeps to its schema, expression or grammar, and what cannot be kept is refused."""
from __future__ import annotations

import json
import re
from functools import cache, partial
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

import mlc
from mlc.models.constraints import Constraint
from mlc.models.constraints.automaton import Matcher
from mlc.models.constraints.vocabulary import Vocabulary, vocabulary_of
from tests.schemas import random_schema

ASSISTANT = Path(__file__).parent.parent / "examples" / "assistant"
END = 2


@cache
def model() -> mlc.models.LanguageModel:
    return mlc.models.load(ASSISTANT)


def drawn(constraint: Constraint, rng: np.random.Generator, limit: int = 200) -> str:
    """A text of random tokens that the masks allow."""
    vocabulary = model().vocabulary
    matcher, text = Matcher(constraint.automaton(vocabulary), [END]), b""
    for i in range(limit):
        token = int(rng.choice(np.flatnonzero(matcher.mask(limit - i))))
        if token == END:
            return text.decode()
        text += vocabulary.of_token(token, i == 0)
        matcher.advance(token)
        if matcher.complete:
            return text.decode()
    raise AssertionError(f"no end after {limit} tokens: {text!r}")


def test_tokens_are_the_bytes_that_the_tokenizer_decodes() -> None:
    tokenizer = model().tokenizer
    assert tokenizer is not None
    for row in np.random.default_rng(0).integers(0, 1024, (50, 12)).tolist():
        text = b"".join(model().vocabulary.of_token(t, i == 0) for i, t in enumerate(row))
        assert text.decode(errors="replace") == tokenizer.decode(row)


def test_tokens_of_sentencepiece(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models
    names = ["<s>", "<0xC3>", "<0xA9>", "▁a", "b", "▁"]
    rules = Tokenizer(models.BPE({n: i for i, n in enumerate(names)}, [], byte_fallback=True))
    rules.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                       decoders.Strip(" ", 1, 0)])
    rules.add_special_tokens(["<s>"])
    rules.save(str(tmp_path / "tokenizer.json"))
    tokenizer = mlc.models.text.Tokenizer.of_file(tmp_path / "tokenizer.json")
    found = vocabulary_of(tokenizer, 7)
    assert found.tokens == (b"", b"\xc3", b"\xa9", b" a", b"b", b" ", b"")
    for row in ([3, 4, 3, 1, 2], [5, 3], [4, 5, 4]):
        assert b"".join(found.of_token(t, i == 0) for i, t in enumerate(row)).decode() == tokenizer.decode(row)


@pytest.mark.parametrize("pattern", [
    r"\d{3}-[a-c]+x?", r"(foo|ba[rz]){2,4}!", r"[^a-z]{5}", r".{3}é+", r"(?:a|b)*?c", r"\w+@\w+\.(com|org)",
    r"(?i:abc)D", r"^a{,2}$|^[\]\-x]\x41€$", r"(?P<year>[12]\d{3})\s\S\D\W"])
def test_texts_match_regular_expressions(pattern: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert re.fullmatch(pattern, drawn(Constraint.regex(pattern), rng))


GRAMMARS = [
    'start: sum\nsum: sum "+" term | term\nterm: term "*" f | f\nf: INT | "(" sum ")"\n%import common.INT\n%ignore " "',
    'start: pair+\npair: CNAME "=" ESCAPED_STRING ";"\n%import common (CNAME, ESCAPED_STRING, WS)\n%ignore WS',
    'start: a\na: b "x" | "q"i\nb: a "y" | "z"']


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_lark_accepts_texts_of_its_grammars(grammar: str) -> None:
    from lark import Lark
    accepts, rng = Lark(grammar, parser="earley", lexer="dynamic_complete"), np.random.default_rng(0)
    for _ in range(4):
        accepts.parse(drawn(Constraint.grammar(grammar), rng, 40))


def test_values_are_valid_by_random_schemas() -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        schema = random_schema(rng)
        text = drawn(Constraint.json_schema(schema), rng, 300)
        validator = jsonschema.Draft202012Validator        # which checks date, email, ipv4 and uuid by itself
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(text))


TAGGED: dict[str, Any] = {"type": "object", "required": ["value"], "properties": {"value": {"const": 1}}}
CHAIN: dict[str, Any] = {f"d{i}": {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(400)}


NODE = {"type": "object", "properties": {"v": {"type": "integer"}, "k": {"allOf": [{"$ref": "#/$defs/n"}, {
    "properties": {"v": {"minimum": 3}}, "required": ["v"]}]}}}
MERGED: list[tuple[dict[str, Any], list[str], list[str]]] = [
    ({"allOf": [{"type": ["number", "string"]}, {"type": ["integer", "string", "null"], "minimum": 3, "minLength": 2}]},
     ["3", '"ab"'], ["2", "3.5", '"a"', "null"]),
    ({"type": "object", "allOf": [{"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
                                  {"properties": {"b": {}}}]}, ["{}", '{"a":1}'], ['{"b":1}', '{"a":1,"b":1}']),
    ({"type": "object", "allOf": [{"properties": {"a": {"type": "null"}}, "additionalProperties": {"minimum": 2}},
                                  {"patternProperties": {"^[ab]$": {"type": ["integer", "null"]}}}]},
     ['{"a":null}', '{"a":null,"b":2}', '{"b":null}'], ['{"a":2}', '{"b":1}', '{"b":"x"}']),
    ({"patternProperties": {"^x": {"type": "integer"}, "y$": {"minimum": 3}}, "additionalProperties": {"type": "null"}},
     ['{"xa":1,"q":null}', '{"xy":3}', '{"y":3.5}'], ['{"xy":2}', '{"xy":null}', '{"q":1}', '{"y":2}', '{"xy":3.5}']),
    ({"properties": {"x1": {"maximum": 5}}, "patternProperties": {"^x": {"type": "integer"}},
      "required": ["x1", "x2", "z"], "additionalProperties": {"type": "null"}},
     ['{"x1":5,"x2":7,"z":null}'], ['{"x1":6,"x2":7,"z":null}', '{"x1":5,"x2":null,"z":null}', '{"x1":5,"x2":7}']),
    ({"patternProperties": {r"^\d+$": {"const": 1}}}, ['{"12":1,"3": 1}'], ['{"12":2}', '{"a":1}', '{"\u0663":1}']),
    ({"type": "integer", "multipleOf": 7, "minimum": 10}, ["14", "21", "7000"], ["7", "15", "014", "-14"]),
    ({"allOf": [{"multipleOf": 4}, {"multipleOf": 6.0}], "type": "number", "maximum": -1}, ["-12", "-144"],
     ["0", "-6", "-8", "12"]),
    ({"type": "integer", "multipleOf": 86400}, ["0", "172800"], ["86401", "-1"]),
    ({"type": "integer", "multipleOf": 5000, "maximum": -3}, ["-5000", "-10000"], ["0", "5000", "-5001"]),
    ({"pattern": "^(ab|c)*$", "minLength": 3, "maxLength": 4}, ['"abc"', '"cccc"'], ['"ab"', '"ccccc"', '"abd"']),
    ({"allOf": [{"pattern": '"'}, {"pattern": "^[^a]*$"}, {"maxLength": 3}]}, [r'"x\"y"'],
     [r'"a\""', '"xy"', r'"\"bcd"']),
    ({"enum": [1, 2, "a", None, [1, 1.0]], "type": ["integer", "null", "array"], "not": {"const": 1.0},
      "uniqueItems": True}, ["2", "null"], ["1", '"a"', "[1,1.0]"]),
    ({"$ref": "#/$defs/n", "$defs": {"n": NODE}}, ['{"v":1,"k":{"v":3,"k":{"v":4}}}'],
     ['{"k":{"v":2}}', '{"k":{"v":3,"k":{}}}', '{"k":{"v":3,"k":{"v":2}}}']),
    ({"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"type": "integer"}}}, ["2"], ["1", "2.5"]),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
      "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     ['{"a":null}', '{"b":null}', '{"a":null,"b":null}'], ["{}"]),
    ({"type": "object", "properties": {"k": {"enum": ["a", "b"]}, "x": {"type": "integer"}}, "required": ["k"],
      "if": {"properties": {"k": {"const": "a"}}}, "then": {"required": ["x"]}, "else": {"properties": {"x": False}}},
     ['{"k":"a","x":1}', '{"k":"b"}'], ['{"k":"a"}', '{"k":"b","x":1}', "{}"]),
    ({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}},
      "if": {"properties": {"a": {"const": True}}, "required": ["a"]}, "then": {"required": ["b"]}},
     ["{}", '{"a":false}', '{"b":null}', '{"a":true,"b":null}'], ['{"a":true}']),
    ({"not": {"type": ["object", "array", "integer"]}, "type": ["integer", "null", "object"]}, ["null"], ["1", "{}"]),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "not": {"required": ["a"]}},
     ["{}", '{"b":null}'], ['{"a":null}']),
    ({"type": "array", "items": {"enum": ["a", "b", 1, 1.0]}, "uniqueItems": True, "minItems": 2},
     ['["a","b"]', '[1,"b"]', '["b", "a",1]'], ['["a"]', '["a","a"]', "[1,1]", '["a","b",1,"a"]']),
    ({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "maxItems": 1}, ["[]", "[true]"],
     ["[true,false]"]),
    ({"type": "array", "items": {"type": ["integer", "null"]}, "contains": {"minimum": 5, "type": "integer"},
      "maxItems": 3}, ["[5]", "[1,7,null]", "[null,1, 6]"], ["[]", "[1]", "[null]", "[1,2,3,7]"]),
    ({"type": "array", "contains": {"const": 1}, "minContains": 2, "minItems": 3}, ['[1,"a",1]', "[1,1,1,{}]"],
     ["[1,1]", "[1,2,3]"]),
    ({"type": "object", "properties": {"a": {"$ref": "#/anyOf/0"}, "b": {"type": "null"}}, "required": ["b"],
      "anyOf": [{"type": "object", "properties": {"c": {"const": 1}}}]}, ['{"a":{"c":1},"b":null}', '{"b":null}'],
     ['{"a":{"b":null}}', "{}"]),
    ({"properties": {"a": {"type": ["integer", "null"]}, "b": {"$ref": "#/properties/a"}},
      "patternProperties": {"^a": {"minimum": 3}}}, ['{"a":3,"b":2}'], ['{"a":2}']),
    ({"type": "array", "allOf": [{"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
                                 {"prefixItems": [True, {"minLength": 2}], "maxItems": 3}]},
     ["[]", '[1,"ab","c"]'], ['["a"]', '[1,"a"]', '[1,"ab",2]', '[1,"ab","c","d"]'])]


@pytest.mark.parametrize("schema, good, bad", [
    ({"type": "integer", "minimum": -12, "exclusiveMaximum": 105}, ["-12", "-9", "0", "99", "104"],
     ["-13", "105", "01"]),
    ({"type": "number", "exclusiveMinimum": 0.5, "maximum": 2}, ["0.51", "1", "1.75", "2", "2.0"],
     ["0.5", "2.01", "-1"]),
    ({"type": "number", "minimum": -1.25, "maximum": -1}, ["-1.25", "-1", "-1.1"], ["-1.26", "1", "-0.99"]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"\\u00e9é"', '"\\n\\"x"'],
     ['"a"', '"abcd"', '"\n\n"']),
    ({"type": "string", "format": "date"}, ['"2024-02-28"'], ['"2024-02-31"', '"x"']),
    ({"properties": {"a": {"type": "null"}, "b": True}, "required": ["b"]}, ['{"b":[1, {}]}', '{"a":null,"b": 1}'],
     ['{"a":null}', '{"b":1,"a":null}', '{"b":1,"c":1}']),
    ({"required": ["x"], "additionalProperties": {"type": "integer"}, "type": "object"}, ['{"x":1,"xy":2}'],
     ['{"xy":2}', '{"x":1,"x":2}', '{"x":""}']),
    ({"oneOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]}, ['""', "null"], ["1"]),
    ({"pattern": "^((){10000}){10000}$"}, ['""'], ['"a"']),
    ({"pattern": r"^[^\s\d]$"}, ['"é"', '"a"'], ['"\u00a0"', '"\u0663"', '"\u3000"']),
    ({"pattern": r"^[^\W]$"}, ['"a"'], ['"\u2014"', '"é"']),
    ({"pattern": "^(?i:[^sé])$"}, ['"a"', '"ü"'], ['"\u017f"', '"S"', '"É"']),
    ({"format": "date-time"}, ['"0001-01-01T00:00:00Z"'], ['"0000-01-01T00:00:00Z"']),
    ({"properties": {"p": {"const": 1}, "p~after 0": {"const": 2}}, "required": ["p", "p~after 0"]},
     ['{"p":1,"p~after 0":2}'], ['{"p":1,"p~after 0":1}', '{"p":1,"p~after 0":}']),
    ({"properties": {"a": {"properties": {"b": {"const": 1}}}, "a/properties/b": {"const": 2}}},
     ['{"a":{"b":1},"a/properties/b":2}'], ['{"a":{"b":2}}', '{"a/properties/b":1}']),
    ({"properties": {"c": {"$ref": "#/properties/a~1b"}, "a/b": {"const": 1}, "a~1b": {"const": 2}}},
     ['{"c":1,"a/b":1,"a~1b":2}'], ['{"c":2}', '{"a~1b":1}']),
    ({"anyOf": [{"type": "array", "minItems": 3, "maxItems": 2}, {"type": "object", "minProperties": 1,
      "maxProperties": 0}, {"type": "null"}]}, ["null"], ["[]", "[1,2,3]", "{}"]),
    ({"$ref": "#/$defs/d0", "$defs": {**CHAIN, "d400": {}}}, ["[]", "[[],[[]]]"], ["[1]"]),
    *MERGED])
def test_texts_of_schemas(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    automaton = Constraint.json_schema(schema).automaton(Vocabulary([bytes([i]) for i in range(256)]))
    for text in (*good, *bad):
        state = automaton.start
        for byte in text.encode():
            state = automaton.next(state, byte) if state >= 0 else state
        assert (state >= 0 and automaton.accepts[state]) == (text in good), text


@pytest.mark.parametrize("make, message", [
    (lambda: Constraint.json_schema({"type": "array", "items": {"uniqueItems": True}}), "#/items: the keyword uniqu"),
    (lambda: Constraint.json_schema({"allOf": [{"const": 1}, {"const": True}]}).automaton(Vocabulary([b"a"])),
     "no text satisfies"),
    (lambda: Constraint.json_schema({"allOf": [{"$ref": "#"}, {"minimum": 1}]}), "leads to itself"),
    (lambda: Constraint.json_schema({"type": "string", "not": {"const": "a"}}), "the keyword not is not supported"),
    (lambda: Constraint.json_schema({"if": {"minimum": 3}, "then": {}}), "the keyword if is not supported"),
    (lambda: Constraint.json_schema({"if": {"required": [[]]}}), "the keyword if is not supported"),
    (lambda: Constraint.json_schema({"uniqueItems": True, "contains": {}}), "stands beside"),
    (lambda: Constraint.json_schema({"contains": {}, "maxItems": 501}), "large numbers of items"),
    (lambda: Constraint.json_schema({"multipleOf": 0.1}), "multipleOf is 0.1, and only those of integers"),
    (lambda: Constraint.json_schema({"multipleOf": 0}), "multipleOf is 0"),
    (lambda: Constraint.json_schema({"patternProperties": {"(?i:a)": {}}}), "has the flag i"),
    (lambda: Constraint.json_schema({"enum": ["\u0663"], "pattern": r"\d"}), "differs from language to language"),
    (lambda: Constraint.json_schema({"pattern": "^(a|b)*a(a|b){20}$", "maxLength": 90}), "states"),
    (lambda: Constraint.json_schema({"enum": ["a" * 60 + "!"], "pattern": "^(a+)+$"}).automaton(Vocabulary([b"a"])),
     "no text satisfies"),                                 # and it does not take for ever
    (lambda: Constraint.json_schema({"allOf": [{"minimum": "a"}, {"minimum": 1}]}), "minimum is 'a'"),
    (lambda: Constraint.json_schema({"type": "string", "format": "iban"}), "the format 'iban'"),
    (lambda: Constraint.json_schema({"oneOf": [{"type": "integer"}, {"type": "number"}]}), "may hold at once"),
    (lambda: Constraint.json_schema({"$ref": "#/$defs/x"}), "leads to nothing"),
    (lambda: Constraint.json_schema({"$ref": "#"}).automaton(Vocabulary([b"a"])), "no text satisfies"),
    (lambda: Constraint.regex(r"(a)\1"), "\\\\1 is not supported"),
    (lambda: Constraint.regex("(?=a)b"), "is not supported"), (lambda: Constraint.regex("a("), "too early|not closed"),
    (lambda: Constraint.regex("(a|b" * 51 + ")+" * 51), "groups are nested too deeply"),
    (lambda: Constraint.regex("(a|b" * 50 + ")+" * 50).automaton(Vocabulary([b"a"])), "has more than"),
    (lambda: Constraint.regex("[b-a]"), "range of characters"), (lambda: Constraint.regex("a{1,10001}"), "10000 times"),
    (lambda: Constraint.grammar("start: b"), "lark does not take"),
    (lambda: Constraint.grammar("%import .other.X\nstart: X"), "imports another file"),
    (lambda: Constraint.grammar("%import \\\n.other.X\nstart: X"), "imports another file"),
    (lambda: Constraint.grammar("%import common \\\n.other.X\nstart: X"), "imports another file"),
    (lambda: Constraint.grammar("%declare FOO\nstart: FOO"), "FOO is declared only"),
    (lambda: Constraint.regex(f"({'()' * 500}a){{9999}}").automaton(Vocabulary([b"a"])), "has more than"),
    (lambda: Constraint.json_schema({"format": []}), "the format"),
    (lambda: Constraint.json_schema({"required": [1, {}]}), "wrong name"),
    (lambda: Constraint.json_schema({"oneOf": [{"required": [[]], "properties": {"a": {}}}]}), "wrong name"),
    (lambda: Constraint.json_schema({"required": ["a", "a"]}), "wrong name"),
    (lambda: Constraint.json_schema({"properties": {"a": {"$id": "b", "items": {"$ref": "#"}}}}), "a: .id stands"),
    (lambda: Constraint.json_schema({"minItems": 3, "maxItems": 2}).automaton(Vocabulary([b"a"])), "no text satisfies"),
    (lambda: Constraint.json_schema({"minProperties": 1, "additionalProperties": False}).automaton(Vocabulary([b"a"])),
     "no text satisfies"),
    *((partial(Constraint.json_schema, {"oneOf": parts}), "may hold at once") for parts in (
        [{"const": 1}, {"const": 1.0}], [{"enum": [{"value": 1}]}, TAGGED],
        [{**TAGGED, "required": [""], "properties": {"": {"const": "x"}}}, {"type": "object"}],
        [{**TAGGED, "type": ["object", "null"]}, {"type": ["object", "null"], "required": ["value"],
                                                  "properties": {"value": {"const": 2}}}]))])
def test_refused_constraints(make: Any, message: str) -> None:
    with pytest.raises(mlc.UserError, match=message) as caught:
        make()
    assert caught.value.code == "MLC0919"


@pytest.mark.parametrize("token", [0, 2, 3])
def test_a_token_that_the_mask_forbids_is_refused(token: int) -> None:
    matcher = Matcher(Constraint.regex("ab").automaton(Vocabulary([b"", b"a", b"b", b"bab"])), [])
    with pytest.raises(mlc.UserError, match=f"the token {token} came"):
        matcher.advance(token)
    matcher.advance(1)                                     # the matcher is where it was


def test_a_model_keeps_to_a_schema() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "axes": {"type": "array", "items": {
        "type": "integer"}}}, "required": ["name", "axes"], "additionalProperties": False}
    options: dict[str, Any] = {"constraint": Constraint.json_schema(schema), "max_tokens": 40, "seed": 3}
    for found in model().generate(["A", "B c"], **options):
        jsonschema.validate(json.loads(found.text), schema)    # although 40 tokens would cut many answers
        assert found.finish_reason == "stop"
