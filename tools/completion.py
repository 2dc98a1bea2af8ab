"""mlc completion: a script that completes commands and options in a shell, generated from the commands' parsers."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from mlc.tools import report
from mlc.tools.cli import COMMANDS

EXAMPLES = """examples:
  mlc completion bash
  mlc completion fish

to have it in every shell:
  ~/.bashrc                    eval "$(mlc completion bash)"
  ~/.zshrc, after compinit     eval "$(mlc completion zsh)"
  ~/.config/fish/config.fish   mlc completion fish | source
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("completion", "Print a script that completes mlc's commands and options in a shell.", EXAMPLES)
    p.add_argument("shell", choices=sorted(SCRIPTS), help="the shell that is to read it")
    return p


def main(options: argparse.Namespace) -> int:
    print(SCRIPTS[options.shell](list(described())), end="")
    return 0


@dataclass(frozen=True)
class Option:
    """One option of a command: its spellings, what it is for, and the values it takes (none: a file or a text)."""

    spellings: tuple[str, ...]
    help: str
    takes_value: bool
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command, its options, and the words that may stand without one (none: files)."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()


OF_ALL = (Option(("--debug",), "show the traceback of an error", False),
          Option(("--color",), "colour messages", True, report.COLORS))


def described() -> Iterable[Command]:
    """Descriptions of the commands, taken from their parsers."""
    for name, what in COMMANDS.items():
        known = importlib.import_module(f"mlc.tools.{name.replace('-', '_')}").parser()
        options, words = list[Option](), list[str]()
        for action in known._actions:
            values = tuple(map(str, action.choices or ()))
            if action.option_strings:
                text = " ".join((action.help or "").split()) % {"default": action.default, "prog": "mlc"}
                options.append(Option(tuple(action.option_strings), text, action.nargs != 0, values))
            else:
                words += values
        yield Command(name, what, (*options, *OF_ALL), tuple(words))


# -- bash -------------------------------------------------------------------------------------------------------------
def bash(commands: list[Command]) -> str:
    """Completes the values of an option that has choices, else the options or words of the command, or files."""
    cases = list[str]()
    for command in commands:
        values = "".join(f"            {'|'.join(o.spellings)}) words={shlex.quote(' '.join(o.values))} ;;\n"
                         if o.values else f"            {'|'.join(o.spellings)}) files=1 ;;\n"
                         for o in command.options if o.takes_value)
        spellings = " ".join(s for o in command.options for s in o.spellings)
        cases.append(f"        {command.name})\n            options={shlex.quote(spellings)}\n"
                     f"            words={shlex.quote(' '.join(command.words))}\n"
                     f"            case $before in\n{values}            esac ;;\n")
    names = " ".join(c.name for c in commands)
    return f"""# bash completion of mlc
_mlc() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options= words= files=
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W {shlex.quote(names + " help --help --version")} -- "$word"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
        help) words={shlex.quote(names)} ;;
{"".join(cases)}    esac
    if [[ -z $files && $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif [[ -z $files && -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _mlc mlc
"""


# -- zsh --------------------------------------------------------------------------------------------------------------
def zsh(commands: list[Command]) -> str:
    shown = [c.name + ":" + c.help.replace(":", "\\:") for c in commands]
    names = "".join(f"        {shlex.quote(text)}\n" for text in shown)
    cases = "".join(f"        {c.name}) _arguments {' '.join(_zsh_arguments(c))} ;;\n" for c in commands)
    return f"""#compdef mlc
_mlc() {{
    local -a commands=(
{names}    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
        help) _describe command commands ;;
{cases}    esac
}}
compdef _mlc mlc
"""


def _zsh_arguments(command: Command) -> Iterable[str]:
    for option in command.options:
        values = f"({' '.join(option.values)})" if option.values else "_files"
        value = f":value:{values}" if option.takes_value else ""
        help = re.sub(r"([\[\]\\])", r"\\\1", option.help)
        for spelling in option.spellings:
            yield shlex.quote(f"{spelling}[{help}]{value}")
    yield shlex.quote(f"*:word:({' '.join(command.words)})" if command.words else "*:file:_files")


# -- fish -------------------------------------------------------------------------------------------------------------
def fish(commands: list[Command]) -> str:
    lines = ["# fish completion of mlc"]
    for command in commands:
        lines.append(f"complete -c mlc -f -n __fish_use_subcommand -a {command.name} -d {_fish(command.help)}")
        here = f"complete -c mlc -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            spelled = " ".join(f"-l {s[2:]}" if s.startswith("--") else f"-s {s[1:]}" if len(s) == 2 else f"-o {s[1:]}"
                               for s in option.spellings)
            value = f" -x -a {_fish(' '.join(option.values))}" if option.values else " -r" if option.takes_value else ""
            lines.append(f"{here} {spelled}{value} -d {_fish(option.help)}")
        if command.words:
            lines.append(f"{here} -f -a {_fish(' '.join(command.words))}")
    return "\n".join(lines) + "\n"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
