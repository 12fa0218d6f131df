"""Random programs of the workload language, as source text.

Variables have types, so that most programs run to their end; now and then an expression of another type is
put in, so that errors are compared too. Integers are kept small (assignments end in ``% 1009``): beyond 64 bits
the lives differ by design.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

HEAD = """
from decimal import Decimal
from dbdyno.workload.decimals import decimal
from dbdyno.workload import Rollback, Workload, marks, option, state, transaction

NAMES = ("BAR", "OUGHT", "ABLE", "näh")
LIMITS = [3, 1, 4, 1, 5]
PRICE = Decimal("12.50")
FEW = 3


def mixed(a, b=2):
    if a > b:
        return a - b
    for i in range(3):
        if i == a:
            return i * 10
    return b


def joined(text, n):
    return f"{text}/{n:03d}"


class Base(Workload):
    size: int = option(50, "rows", ge=1)
    share: float = option(0.25, "a share")
    loud: bool = option(True, "whether")

    def named(self, n):
        return NAMES[n % 4]

    def total(self, numbers, start=0):
        found = start
        for number in numbers:
            if number < 0:
                continue
            found += number
            if found > 900:
                break
        return found

    def probe(self, db, x):
        db.execute("UPDATE t SET probe = ?", x)


class Written(Base):
    count = state(0)
    label = state("none")

    def named(self, n):
        return super().named(n + 1) + "!"

    def start(self, db, rand):
        row = db.row("SELECT MAX(id) FROM t WHERE part = ?", db.terminal)
        if row is not None and row[0] is not None:
            db.state.count = 1

    @transaction
    def event(self, db, rand):
"""

INTS, STRS, FLOATS, LISTS, DECIMALS, BOOLS = ("i", "j", "k"), ("s", "t"), ("f",), ("xs", "ys"), ("d",), ("p", "q")
BEGINNING = """\
i = rand.uniform(-20, 20)
j = rand.pick(1, self.size)
k = 0
s = rand.template("@@#é")
t = "abcab"
f = rand.real()
xs = [3, 1, 2]
ys = [j, i]
d = PRICE
p = rand.chance(0.5)
q = i < j
row = (1, "x", None)
rows = [(1, "x", 2.5)]
"""


#: Expressions of each type. ``@i`` stands for an integer a level further down, ``@I`` for a plain one; so with f
#: (float), s (string), l (list), d (decimal), b (truth), a (any type).
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "i": (
        "(@i + @i)", "(@i - @i)", "(@i * @i)", "(@i // @i)", "(@i % @i)", "(-@i)", "abs(@i)", "min(@i, @i)",
        "max(@i, @i, 5)", "int(@f)", "round(@f)", "len(@s)", "len(@l)", "@L[@i]", "min(@l)", "(@i if @b else @i)",
        "(@i or @i)", "mixed(@i, @i)", "mixed(@i)", "self.total(@l, start=@i)", "rand.uniform(@i, @i + 2000)",
        "rand.nurand(255, 1, self.size, 7)", "rand.permute(100, @i % 100)", "rand.at('t', @i % 50).uniform(1, 9)",
        "sum(@l)", "(@i & @i)", "(@i | @i)", "((@i) % 5) ** 2", "row[0]", "len(rows)", "int(str(@i))",
    ),
    "f": (
        "(@f + @i)", "(@f * @f)", "(@i / @f)", "(@i / @i)", "(@f // @f)", "(@f % @f)", "round(@f, 1)", "round(@f, 0)",
        "rand.real()", "float(@i)", "float(@d)", "abs(@f)", "(-@f)", "rand.exponential(abs(@f))",
    ),
    "s": (
        "(@s + @s)", "@s[@I:@I]", "@s[@I:]", "(@s * 2)", "@s[@I]", "str(@i)", "str(@f)", "str(@d)",
        "self.named(abs(@i))", "joined(@s, @i)", 'f"{@I}-{@S}"', 'f"{@I:05d}|{@I:4d}|{@F:.2f}|{@D:.1f}"',
        'f"{@F}{@B}{@D}"', "NAMES[rand.uniform(0, 3)]", "rand.text(0, 4, 'abcé')", "(@s if @b else @s)",
    ),
    "l": (
        "[@i, @i]", "([@i] * 3)", "(@l + @l)[:6]", "@l[@I:@I]", "sorted(@l)", "sorted(@l, reverse=True)",
        "[x % 7 for x in @l]", "[x * @I % 11 for x in @l if x > @I]", "[rand.uniform(0, 9) for _ in range(FEW)]",
        "[n + x for n, x in enumerate(@l, 1)]", "[x for x in range(@I, @I)][:5]", "[]",
    ),
    "d": (
        "(@d + @d)", "(@d - @I)", "(@d * @I)", "round(@d, 2)", "max(@d, @d)", "(-@d)", "abs(@d)",
        "decimal(@f, 2)", "decimal(@i, 1)", "decimal(@d, 1)", "decimal(str(@f), 3)",
    ),
    "b": (
        "(@i < @i)", "(@i == @i)", "(@i >= @i)", "(@f < @i)", "(@i <= @f)", "(@d > @i)", "(@d == @i)", "(@s < @s)",
        "(@s == @s)", "(@i < @i < @I)", "(@i >= @I != @i)", "(@b and @b)", "(@b or @b)", "(not @b)", "(@i in @l)",
        "(@s not in @s)", "(@l < @l)", "(@l == @l)", "(row is not None and row[0] == @i)", "(@a == @a)",
        "(1, 'a', i) == row", "db.has.for_update",
    ),
}  # fmt: skip
PLAIN: dict[str, tuple[str, ...]] = {
    "i": (*INTS, "0", "1", "-7", "13", "FEW", "self.size", "db.state.count", "db.terminal", "True"),
    "f": (*FLOATS, "0.5", "-2.25", "self.share", "1e3"),
    "s": (*STRS, "'x'", "'Grüße'", "''", "db.state.label", "NAMES[0]"),
    "l": (*LISTS, "LIMITS"),
    "d": (*DECIMALS, "PRICE", "Decimal('-0.125')", "Decimal('3')"),
    "b": (*BOOLS, "self.loud", "True", "(row is None)", "rows"),
    "a": ("i", "s", "f", "xs", "d", "p", "None", "row", "rows", "b'ab'"),
}
ASSIGNMENTS = (
    "i = (@i) % 1009", "j = (@i) % 1009", "k = (@i) % 1009", "s = (@s)[:20]", "t = (@s)[:20]", "f = @f", "xs = @l",
    "ys = @l", "d = round(@d, 3) * 1", "p = @b", "q = @b", "i, j = j, i", "i, k = @i, @i", "a, b = xs[:2]",
    "k, s, f = (1, 'u', 0.5)", "k, (s, f) = 4, ('v', 1.5)", "k = j = 5", "i = (i if @b else j) and @i",
)  # fmt: skip
CHANGES = (
    "i += @i", "j -= @I", "f *= @F", "xs.append((@i) % 99)", "ys.append(@I)", "xs[@I] = @i", "ys[0] += @I",
    "xs[-1] -= @i", "ys += @L[:2]", "db.state.count = (@i) % 1009", "db.state.count += 1", "db.state.label = @s",
)  # fmt: skip
HOLES = ("db.terminal", "FEW", "abs(int(j))", "abs(int(k))", "abs(int(i)):02d")
QUEUED = (
    'db.execute("UPDATE t SET a = ? WHERE id = ?", @a, @i)', 'db.query(f"SELECT a FROM t{@h}")',
    'db.row("SELECT a, b FROM t")', "self.probe(db, @a)",
)  # fmt: skip
STATEMENTS = (
    "self.probe(db, @a)",
    "self.probe(db, @i)",
    "self.probe(db, @s)",
    'row = db.row(f"SELECT a, b, c FROM t{@h} WHERE id = ?", @i)',
    'rows = db.query("SELECT a, b, c FROM t WHERE id > ?", @i)',
    'k = db.execute(f"UPDATE t{@h} SET a = ?", @a)',
    'db.query(f"SELECT a FROM t WHERE id IN ({marks(FEW)})", *LIMITS[:3])',
    'db.query(f"SELECT a FROM t WHERE id IN ({marks(len(xs))})", *xs)',
    'db.query("SELECT 1" if @b else f"SELECT {FEW} FROM t")',
    'k = db.batch("INSERT INTO t (a, b) VALUES (?, ?)", [(x, @S) for x in @l])',
    'db.batch("UPDATE t SET a = ?", [(@I,), (@I,)])',
    "db.ack(@a, [@A])",
    'db.execute("UPDATE t SET at = ?", db.now())',
    'if row: db.execute("UPDATE t SET a = ?", row[1])',
    'if db.query("SELECT a FROM t"): k = 1',
    'k = len(db.query("SELECT a FROM t"))',
)
LOOPS = (
    "for k in range(3):", "for i in range(FEW):", "for i in range(1, 4, 2):", "for j in range(5, 2, -1):",
    "for k in range((@i) % 5):", "for i in (@l)[:4]:", "for k, s, f in rows:", "for k, row in enumerate(rows):",
    "for k, t in enumerate(NAMES, j):", "for x in range(@I, @I + 3):",
)  # fmt: skip

_TOKEN = re.compile(r"@([ifsldbahIFSLDBA])")


@dataclass
class Writer:
    """Writes one program; choices come from ``draw``, which may be Hypothesis's."""

    draw: random.Random
    lines: list[str] = field(default_factory=list)
    left: int = 14  # statements that may still be written
    loops: int = 0
    pipelined: bool = False
    opened: bool = False

    def pick(self, *options: str) -> str:
        return self.draw.choice(options)

    def chance(self, n: int) -> bool:
        """One time in ``n``."""
        return self.draw.randint(1, n) == n

    def filled(self, template: str, depth: int) -> str:
        """The template with expressions for its marks, at most ``depth`` deep."""

        def fill(match: re.Match[str]) -> str:
            kind = match[1].lower()
            if kind == "h":
                return self.pick(*HOLES)
            if kind == "a" or self.chance(40):
                kind = self.pick("a", "i", "s", "f", "l", "d", "b")
            if kind == "a" or match[1].isupper() or depth <= 0:
                return self.pick(*PLAIN[kind])
            return self.filled(self.pick(*EXPRESSIONS[kind]), depth - 1)

        return _TOKEN.sub(fill, template)

    def add(self, indent: int, template: str, depth: int = 2) -> None:
        """One line."""
        self.lines.append("    " * indent + self.filled(template, depth))

    def block(self, indent: int) -> None:
        """One to three statements."""
        before = len(self.lines)
        for _ in range(self.draw.randint(1, 3)):
            if self.left > 0:
                self.left -= 1
                self.statement(indent)
        if len(self.lines) == before:
            self.add(indent, "k = k + 1")

    def statement(self, indent: int) -> None:
        """Any statement."""
        kinds = ("assign", "assign", "change", "database", "database", "database")
        kind = self.pick(*kinds, "condition", "loop", "special") if indent < 5 else self.pick(*kinds)
        if kind == "assign":
            self.add(indent, self.pick(*ASSIGNMENTS))
        elif kind == "change":
            self.add(indent, self.pick(*CHANGES))
        elif kind == "database":
            self.database(indent)
        elif kind == "condition":
            self.condition(indent)
        elif kind == "loop" and self.loops < 2:
            self.loop(indent)
        else:
            self.special(indent)

    def database(self, indent: int) -> None:
        """A call of db."""
        if self.pipelined:
            self.add(indent, self.pick(*QUEUED), 1)
            return
        if indent == 2 and self.chance(5):
            self.add(indent, "db.commit()" if self.opened else "db.begin()")
            self.opened = not self.opened
            return
        self.add(indent, self.pick(*STATEMENTS), 1)

    def condition(self, indent: int) -> None:
        """if, elif, else."""
        self.add(indent, "if @b:")
        self.block(indent + 1)
        if self.chance(3):
            self.add(indent, "elif @b:", 1)
            self.block(indent + 1)
        if self.chance(2):
            self.add(indent, "else:")
            self.block(indent + 1)

    def loop(self, indent: int) -> None:
        """for or while, perhaps with break or continue."""
        self.loops += 1
        if self.chance(4):
            counter = f"n{self.loops}"
            self.add(indent, f"{counter} = 0")
            self.add(indent, f"while {counter} < 4 and @b:", 1)
            self.add(indent + 1, f"{counter} += 1")
        else:
            self.add(indent, self.pick(*LOOPS), 1)
        self.block(indent + 1)
        if self.chance(3):
            self.add(indent + 1, "if @b:", 1)
            self.add(indent + 2, self.pick("break", "continue"))
            self.block(indent + 1)
        self.loops -= 1

    def special(self, indent: int) -> None:
        """What ends a transaction or stands in a block of its own."""
        kind = self.pick("pipeline", "rollback", "return", "late")
        if kind == "pipeline" and not self.pipelined:
            self.pipelined = True
            self.add(indent, "with db.pipeline():")
            self.block(indent + 1)
            self.pipelined = False
        elif kind == "late" and not self.pipelined:
            self.add(indent, "if @b:", 1)
            self.add(indent + 1, "late = @i", 1)
            self.add(indent, "self.probe(db, late)")
        else:
            self.add(indent, "if @b:")
            self.add(indent + 1, "raise Rollback" if kind == "rollback" else "return")


def program(draw: random.Random) -> str:
    """Source of a workload module with the class ``Written``."""
    writer = Writer(draw)
    writer.lines.extend("        " + line for line in BEGINNING.splitlines())
    for _ in range(draw.randint(2, 6)):
        if writer.left > 0:
            writer.left -= 1
            writer.statement(2)
    if writer.opened:
        writer.add(2, "db.commit()")
    writer.add(2, "db.execute('UPDATE t SET i = ?, j = ?, k = ?, s = ?, t = ?, f = ?, d = ?', i, j, k, s, t, f, d)")
    writer.add(2, "db.ack(xs, ys, p, q, row, rows)")
    return HEAD + "\n".join(writer.lines) + "\n"
