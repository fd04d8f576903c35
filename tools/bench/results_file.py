"""Puts claims that a script finds in raw rows into results.json: what the claims.py of colocate/ and doors/
have in common. tools/bench/report.py then writes the page."""
import json
import sys

import report

DIGITS = 4   # that count
KEYS = ("id", "claim", "run", "value", "statistic", "n", "of", "low", "high", "spread", "unit", "better",
        "baselines")


def rounded(value):
    return float(f"{value:.{DIGITS}g}")


def between(value, low, high):
    """A value with its spread, which it is never outside of by a rounding."""
    value, low, high = map(rounded, (value, low, high))
    return {"value": value, "low": min(low, value), "high": max(high, value)}


def ordered(claim):
    """As in results.json."""
    return {key: claim[key] for key in KEYS if key in claim}


def one_line(value):
    return json.dumps(value, ensure_ascii=False)


def formatted(data):
    """The text of results.json."""
    def block(name, lines, ends):
        return f' "{name}": {ends[0]}\n' + ",\n".join(f"  {line}" for line in lines) + f"\n {ends[1]}"

    def section(each):
        head = ", ".join(f"{one_line(key)}: {one_line(value)}" for key, value in each.items()
                         if key != "claims")
        claims = ",\n".join(f"   {one_line(claim)}" for claim in each["claims"])
        return f'{{{head}, "claims": [\n{claims}\n  ]}}'

    def named(of):
        return [f"{one_line(key)}: {one_line(value)}" for key, value in data[of].items()]
    return "{\n" + ",\n".join((
        block("text", map(one_line, data["text"]), "[]"), f' "summary": {one_line(data["summary"])}',
        block("machines", named("machines"), "{}"), block("runs", named("runs"), "{}"),
        block("sections", map(section, data["sections"]), "[]"),
        block("figures", map(one_line, data["figures"]), "[]"))) + "\n}\n"


def merged(data, home, name, run, claims):
    """With these claims in place of those of the same names, wherever they are. The others go to the section
    `home` ({title, text}), which is made where there is none."""
    data = json.loads(json.dumps(data))
    data["runs"][name] = run
    new = {claim["id"]: claim for claim in claims}
    for section in data["sections"]:
        section["claims"] = [new.pop(claim["id"], claim) for claim in section["claims"]]
    section = next((each for each in data["sections"] if each["title"] == home["title"]), None)
    if section is None and new:
        section = {**home, "claims": []}
        data["sections"].append(section)
    if new:
        section["claims"] += new.values()
    return data


def add_options(parser):
    """Those that every run has."""
    parser.add_argument("folders", nargs="+", metavar="OUT")
    parser.add_argument("--run", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--raw", required=True, help="where the rows are")
    parser.add_argument("--note")
    parser.add_argument("--write", action="store_true")
    return parser


def put(options, home, command, claims):
    """Prints the claims, and with --write writes them. The exit code."""
    run = {"command": command, "commit": options.commit, "machine": options.machine, "raw": options.raw,
           **({"note": options.note} if options.note else {})}
    text = report.DATA.read_text()
    data = merged(json.loads(text), home, options.run, run, claims)
    wrong = report.mistakes(data)
    if formatted(json.loads(text)) != text:
        wrong.append("results.json is not written as this script writes it")
    for each in claims:
        print(one_line(each))
    if wrong or not claims:
        print("\n".join(wrong) or "no claims", file=sys.stderr)
        return 1
    if options.write:
        report.DATA.write_text(formatted(data))
    return 0
