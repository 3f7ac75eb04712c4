"""Completion of the command in shells, from the table of verbs and options.

bash gets a script of its own. zsh gets the same words with their descriptions.
"""

import re

# These words stand for values that are names of files, of directories, and of jobs.
FILES = re.compile(r"FILE|LEDGER|PROFILE")
DIRECTORIES = re.compile(r"DIRECTORY|PATH")
JOBS = re.compile(r"\bJOB\b")

_BASH = """# bash completion of diapause. Made from the command's own help.

_diapause_jobs() {{
  diapause jobs --json 2>/dev/null | sed -n 's/^ *"job": "\\(.*\\)-[0-9a-f]\\{{8\\}}",*$/\\1/p'
}}

# The options of a verb, and what kinds of values follow one of its options or stand alone:
# - nothing is completed, f files, d directories, j jobs.
_diapause_table() {{
  case "$1" in
{rows}
  esac
}}

_diapause_values() {{
  local kinds=$1 word=$2
  case $kinds in *j*) COMPREPLY+=($(compgen -W "$(_diapause_jobs)" -- "$word")) ;; esac
  case $kinds in *[fd]*) compopt -o filenames 2>/dev/null ;; esac
  case $kinds in *f*) COMPREPLY+=($(compgen -f -- "$word")) ;; esac
  case $kinds in *d*) COMPREPLY+=($(compgen -d -- "$word")) ;; esac
}}

_diapause() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local verb="" verbs options kinds alone position
  local IFS=$' \\t\\n'
  COMPREPLY=()
  IFS='|' read -r verbs options kinds alone <<<"$(_diapause_table "")"
  for ((position = 1; position < COMP_CWORD; position++)); do
    # What follows -- is another command.
    if [[ ${{COMP_WORDS[position]}} == -- ]]; then
      compopt -o default 2>/dev/null
      return
    fi
    if [[ " $verbs " == *" ${{COMP_WORDS[position]}} "* ]]; then
      verb="${{verb:+$verb }}${{COMP_WORDS[position]}}"
      IFS='|' read -r verbs options kinds alone <<<"$(_diapause_table "$verb")"
    fi
  done
  if [[ $before == -* && " $kinds" == *" $before="* ]]; then
    kinds="${{kinds#*"$before="}}"
    _diapause_values "${{kinds%% *}}" "$word"
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$verbs" -- "$word"))
    _diapause_values "$alone" "$word"
  fi
}}

complete -F _diapause diapause
"""

_ZSH = """#compdef diapause
# zsh completion of diapause. Made from the command's own help.

_diapause_jobs() {{
  local -a jobs
  jobs=(${{(f)"$(diapause jobs --json 2>/dev/null |
    sed -n 's/^ *"job": "\\(.*\\)-[0-9a-f]\\{{8\\}}",*$/\\1/p')"}})
  compadd -a jobs
}}

_diapause() {{
  local curcontext=$curcontext state line verb=$1
  (( $# )) || verb=diapause
  case $verb in
{rows}
  esac
}}

_diapause_verbs() {{
  local -a verbs
  case $1 in
{verbs}
  esac
  _describe verb verbs
}}

_diapause
"""


def kinds(value):
    """Returns what completes a value: some of f, d and j, or -."""
    found = ("f" if FILES.search(value) else "") + ("d" if DIRECTORIES.search(value) else "")
    return (found + ("j" if JOBS.search(value) else "")) or "-"


def _argument_value(argument):
    """The only names that stand alone are those of jobs."""
    return "JOB" if argument.value == "NAME" else argument.value


def _bash_row(verb):
    options = [name
               for option in verb.all_options() for name in (option.short, option.long) if name]
    values = [f"{name}={kinds(option.value)}" for option in verb.all_options() if option.value
              for name in (option.short, option.long) if name]
    alone = kinds(" ".join(_argument_value(argument) for argument in verb.arguments))
    row = "|".join([" ".join(verb.verbs), " ".join(options), " ".join(values), alone])
    return f"    '{' '.join(verb.words)}') echo '{row}' ;;"


def bash(verbs):
    """The script as text."""
    return _BASH.format(rows="\n".join(_bash_row(verb) for verb in verbs))


def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def _bare(text):
    """A description without the characters that mean something in a specification."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _zsh_action(value):
    actions = {"f": "_files", "d": "_files -/", "j": "_diapause_jobs"}
    wanted = [actions[kind] for kind in kinds(value) if kind != "-"]
    if len(wanted) > 1:
        return (
            "_alternative " + " ".join(f"'{kind}:{kind}:{actions[kind]}'" for kind in kinds(value)))
    return wanted[0] if wanted else " "


def _zsh_specification(option, name):
    value = f":{_bare(option.value)}:{_zsh_action(option.value)}" if option.value else ""
    return _quoted(f"*{name}[{_bare(option.text)}]{value}")


def _zsh_row(verb):
    lines = [_zsh_specification(option, name) for option in verb.all_options()
             for name in (option.short, option.long) if name]
    if verb.verbs:
        name = "-".join(["diapause", *verb.words])
        lines += [_quoted(f"1:verb:_diapause_verbs {name}"), "'*:: :->below'"]
    for argument in verb.arguments:
        is_command = argument.value.startswith("--")
        lines.append("'*:: :_normal'" if is_command else
                     _quoted(f"*:{_bare(argument.value)}:{_zsh_action(_argument_value(argument))}"))
    name = "-".join(["diapause", *verb.words])
    words = " \\\n        ".join(["_arguments -C", *lines])
    below = f'\n      [[ $state == below ]] && _diapause "{name}-$words[1]"' if verb.verbs else ""
    return f"    {name})\n      {words}{below}\n      ;;"


def zsh(verbs):
    """The function as text."""
    summaries = {tuple(verb.words): verb.summary for verb in verbs}
    lists = []
    for verb in verbs:
        below = [_quoted(f"{name}:{summaries[(*verb.words, name)]}") for name in verb.verbs]
        if below:
            lists.append(f"    {'-'.join(['diapause', *verb.words])}) verbs=({' '.join(below)}) ;;")
    return _ZSH.format(rows="\n".join(_zsh_row(verb) for verb in verbs), verbs="\n".join(lists))
