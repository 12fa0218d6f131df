"""An order-entry workload as its author would write it: decimals, lists of lines, rollback, batch, pipeline."""

from __future__ import annotations

from decimal import Decimal

from dbdyno.workload import Rollback, Workload, marks, option, state, transaction
from dbdyno.workload.decimals import decimal

SYLLABLES = ("BAR", "OUGHT", "ABLE")
C_LAST = 173


def last_name(n):
    return SYLLABLES[n // 100 % 3] + SYLLABLES[n // 10 % 3] + SYLLABLES[n % 3]


class OrderEntry(Workload):
    warehouses: int = option(2, "w", ge=1)
    items: int = option(1000, "i")
    home = state(0)

    def start(self, db, rand):
        db.state.home = (db.terminal - 1) % self.warehouses + 1

    @transaction(weight=45, keying_s=18, think_s=12)
    def new_order(self, db, rand):
        w = db.state.home
        d = rand.uniform(1, 10)
        c = rand.nurand(1023, 1, 3000, 259)
        count = rand.uniform(5, 15)
        rollback = rand.uniform(1, 100) == 1
        lines = []
        all_local = 1
        for number in range(1, count + 1):
            item = rand.nurand(8191, 1, self.items, 7911)
            if rollback and number == count:
                item = self.items + 1
            supply = w
            if self.warehouses > 1 and rand.chance(0.01):
                supply = self._other(rand, w)
                all_local = 0
            lines.append((supply, item, rand.uniform(1, 10)))
        lines = sorted(lines)
        db.begin()
        with db.pipeline():
            db.execute("UPDATE a SET b = ? WHERE c = ?", 1, w)
        customer = db.row("SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_id = ?", w, c)
        tax = db.row(f"SELECT w_tax FROM warehouse WHERE w_id = ? {db.for_update}", w)[0]
        district = db.row("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ?", w, d)
        if district is None or customer is None:
            raise Rollback
        order, d_tax = district
        discount, last, _ = customer
        total = Decimal("0.00")
        rows = []
        for number, (supply, item, quantity) in enumerate(lines, 1):
            found = db.row("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", item)
            if found is None:
                raise Rollback
            price, _, data = found
            stock = db.row(
                f"SELECT s_quantity, s_data, s_dist_{d:02d} FROM stock WHERE s_i_id = ? AND s_w_id = ?", item, supply
            )
            left = stock[0] - quantity if stock[0] - quantity >= 10 else stock[0] - quantity + 91
            brand = "B" if "ORIGINAL" in data and "ORIGINAL" in stock[1] else "G"
            remote = 0 if supply == w else 1
            db.execute("UPDATE stock SET s_quantity = ?, s_remote = s_remote + ? WHERE s_i_id = ?", left, remote, item)
            amount = decimal(price * quantity, 2)
            total += amount
            rows.append((order, d, w, number, item, supply, quantity, amount, stock[2], brand))
        db.batch(f"INSERT INTO order_line VALUES ({marks(10)})", rows)
        total = decimal(total * (1 - discount) * (1 + tax + d_tax), 2)
        db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", order, w, all_local, db.now(), total)
        db.commit()
        db.ack(w, d, order, total, last, last_name(c))

    def _other(self, rand, w):
        other = rand.uniform(1, self.warehouses - 1)
        return other + 1 if other >= w else other

    @transaction(weight=4)
    def stock_level(self, db, rand):
        rows = db.query("SELECT s_i_id FROM stock")
        seen = []
        for (item,) in rows:
            if item not in seen:
                seen.append(item)
        db.query(f"SELECT 1 FROM x WHERE a IN ({marks(max(1, len(seen)))})", *(seen or [0]))
        name = last_name(rand.uniform(0, 999))
        middle = db.query("SELECT c_id, c_first FROM customer WHERE c_last = ? ORDER BY c_first", name)
        if middle:
            c = middle[(len(middle) + 1) // 2 - 1][0]
            db.execute("UPDATE c SET c_data = ? WHERE c_id = ?", f"{c} {name} | "[:500], c)
