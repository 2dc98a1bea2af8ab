"""Constrained output: answers that satisfy a JSON schema, match a regular expression, or follow a grammar.

A `Constraint` is a set of rules (expressions.py). For the vocabulary of a model it becomes an automaton on bytes
(network.py, automaton.py), which says for each state which tokens may come next. This mask is an argument of the
compiled step that chooses the token: `tensor.where` between the scores and minus infinity, before temperature and
filters. Where few tokens remain of `max_tokens`, the mask leads to the end of the text.

Example:
    >>> from mlc.models.constraints import Constraint
    >>> model = mlc.models.load("examples/assistant")
    >>> mlc.generate(model, "The answer is ", constraint=Constraint.regex("yes|no")).text in ("yes", "no")
    True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlc.models.constraints.automaton import Automaton
    from mlc.models.constraints.expressions import Expression
    from mlc.models.constraints.vocabulary import Vocabulary

__all__ = ["Constraint"]


@dataclass(frozen=True)
class Constraint:
    """The texts that an answer may be.

    Args:
        rules: Expressions by the names of the rules.
        start: The rule that the text as a whole follows.

    Raises:
        UserError: A schema, expression or grammar is wrong, or asks for something that is not enforced (MLC0919).

    Example:
        >>> from mlc.models.constraints import Constraint
        >>> Constraint.json_schema({"type": "boolean"}).start
        '#'
    """

    rules: Mapping[str, Expression]
    start: str

    @staticmethod
    def json() -> Constraint:
        """Any object of JSON.

        The text is one object, with a space or an indentation between its parts, and nothing after it.

        Returns:
            The constraint.

        Example:
            >>> from mlc.models.constraints import Constraint
            >>> Constraint.json().start
            'object'
        """
        from mlc.models.constraints.json_schema import json_rules
        return Constraint(json_rules(), "object")

    @staticmethod
    def json_schema(schema: Any) -> Constraint:
        """Values of JSON that are valid by a schema.

        Properties come in the order of the schema, and others than those only where `additionalProperties` or
        `patternProperties` says so. Types, properties, `required`, items and their counts, lengths, patterns and
        formats of strings, bounds of numbers, `multipleOf` of integers, `contains`, `enum`, `const`, `anyOf`, `allOf`,
        `$ref` and `oneOf` of schemas that exclude each other are enforced, also beside each other; `not` and `if`
        where they are about types, constants or one property, and `uniqueItems` of few constants.

        Args:
            schema: A schema of draft 2020-12: a dict, or True for any value.

        Returns:
            The constraint.

        Raises:
            UserError: The schema is wrong or has a keyword that is not enforced, which the message names (MLC0919).

        Example:
            >>> from mlc.models.constraints import Constraint
            >>> Constraint.json_schema({"enum": [1, 2]}).start
            '#'
        """
        from mlc.models.constraints.json_schema import schema_rules
        return Constraint(*schema_rules(schema))

    @staticmethod
    def regex(pattern: str) -> Constraint:
        r"""Texts that a regular expression matches as a whole.

        The syntax is what Python and ECMAScript share, without back references and conditions on what is before or
        after.

        Args:
            pattern: The regular expression.

        Returns:
            The constraint.

        Raises:
            UserError: The expression is wrong, or has something that is not supported (MLC0919).

        Example:
            >>> from mlc.models.constraints import Constraint
            >>> Constraint.regex(r"\d{4}-\d\d").start
            'text'
        """
        from mlc.models.constraints.regular import regular
        return Constraint({"text": regular(pattern)}, "text")

    @staticmethod
    def grammar(text: str, start: str = "start") -> Constraint:
        """Texts of a context-free grammar, as lark writes grammars.

        The texts are those that lark's parser "earley" with the lexer "dynamic_complete" accepts.

        Args:
            text: The grammar.
            start: The rule to begin with.

        Returns:
            The constraint.

        Raises:
            UserError: The grammar is wrong, or a terminal has something that is not supported (MLC0919).

        Example:
            >>> from mlc.models.constraints import Constraint
            >>> Constraint.grammar('start: "a" start | "b"').start
            'the whole text'
        """
        from mlc.models.constraints.grammar import grammar_rules
        return Constraint(*grammar_rules(text, start))

    def automaton(self, vocabulary: Vocabulary) -> Automaton:
        """The automaton of the constraint on the tokens of a model.

        States and masks are made when they are first needed, and are kept.

        Args:
            vocabulary: The tokens.

        Returns:
            The automaton, which many answers may share.

        Raises:
            UserError: No text satisfies the constraint, or it is too large, or a rule begins with itself (MLC0919).

        Example:
            >>> from mlc.models.constraints import Constraint
            >>> from mlc.models.constraints.vocabulary import Vocabulary
            >>> automaton = Constraint.regex("ab").automaton(Vocabulary([b"a", b"b", b"ab"]))
            >>> automaton.mask(automaton.start, first=True)[0].tolist()
            [True, False, True]
        """
        from mlc.models.constraints.automaton import Automaton
        from mlc.models.constraints.network import Network
        return Automaton(Network(self.rules, self.start), vocabulary)
