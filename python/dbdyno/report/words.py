"""Every word of the reports, in one table: key to (English, Chinese).

Keys that end in ``#one`` are the form for a count of one, where a language has one. Fields in braces are filled
by the caller. Codes, settings, notes of drivers and servers are shown as they came, in no language.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.model.errors import UsageError, nearest

LANGUAGES = ("en", "zh")

TABLE: dict[str, tuple[str, str]] = {
    # The page
    "page.kind": ("Benchmark report", "基准测试报告"),
    "page.contents": ("Contents", "目录"),
    "page.skip": ("Skip to the answer", "跳到结论"),
    "page.subtitle": (
        "{targets} · {workloads} · {connections} connections · {rounds} · {date} UTC",
        "{targets} · {workloads} · {connections} 个连接 · {rounds} · {date} UTC",
    ),
    "page.footer": (
        "Written by dbdyno {version} from campaign {campaign}. "
        "This file needs nothing else: no network, no other file.",
        "由 dbdyno {version} 根据测试活动 {campaign} 生成。本文件自成一体，无需网络或其他文件。",
    ),
    "page.no_script": (
        "The charts need JavaScript; every figure is also in the tables.",
        "图表需要 JavaScript；所有数字均可在表格中查到。",
    ),
    "page.scrolls": ("{caption} (scrolls sideways)", "{caption}（可横向滚动）"),
    # Headings
    "heading.answer": ("Answer", "结论"),
    "heading.throughput": ("Throughput by round", "各轮吞吐量"),
    "heading.connections": ("Throughput and latency against connections", "吞吐量和延迟随连接数的变化"),
    "heading.course": ("Course over time", "随时间的变化"),
    "heading.errors": ("Errors", "错误"),
    "heading.generator": ("Load generator", "压测端状况"),
    "heading.configuration": ("Configuration", "配置差异"),
    "heading.environment": ("Environment", "环境"),
    # Counting
    "connections": ("{count} connections", "{count} 个连接"),
    "connections#one": ("{count} connection", "{count} 个连接"),
    "cores": ("{count} cores", "{count} 核"),
    "cores#one": ("{count} core", "{count} 核"),
    "rounds": ("{count} rounds", "{count} 轮"),
    "rounds#one": ("{count} round", "{count} 轮"),
    "trials": ("{count} trials", "{count} 次试验"),
    "trials#one": ("{count} trial", "{count} 次试验"),
    "round": ("round {number}", "第 {number} 轮"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
    "unknown": ("unknown", "未知"),
    "defaults": ("defaults", "默认值"),
    "baseline": ("{target} (baseline)", "{target}（基线）"),
    # The answer
    "metric.throughput": ("throughput", "吞吐量"),
    "metric.p95": ("p95 latency", "p95 延迟"),
    "interval": ("{low} to {high}", "{low} 至 {high}"),
    "sentence.faster": (
        "{other} is faster than {baseline}: {change} {metric} ({confidence} interval {interval}).",
        "{other} 比 {baseline} 快：{metric} {change}（{confidence} 置信区间 {interval}）。",
    ),
    "sentence.slower": (
        "{other} is slower than {baseline}: {change} {metric} ({confidence} interval {interval}).",
        "{other} 比 {baseline} 慢：{metric} {change}（{confidence} 置信区间 {interval}）。",
    ),
    "sentence.no_difference": (
        "{other} and {baseline}: no difference larger than {limit} in {metric} ({confidence} interval {interval}).",
        "{other} 与 {baseline}：{metric} 差异不超过 {limit}（{confidence} 置信区间 {interval}）。",
    ),
    "sentence.mixed": (
        "It depends on the number of connections: {other} is faster than {baseline} at {faster}, slower at {slower}.",
        "取决于连接数：与 {baseline} 相比，{other} 在 {faster} 时更快，在 {slower} 时更慢。",
    ),
    "sentence.wide": (
        "Cannot tell whether {other} or {baseline} is faster: the rounds differ too much among themselves; "
        "{metric} may differ by {interval} ({confidence} interval). More or longer rounds would narrow it.",
        "无法判断 {other} 与 {baseline} 孰快：各轮之间波动过大，{metric} 的差异可能为 {interval}"
        "（{confidence} 置信区间）。增加轮数或延长每轮时间可缩小区间。",
    ),
    "sentence.one_round": (
        "Cannot tell whether {other} or {baseline} is faster: one round ({change} {metric}) does not show how much "
        "rounds differ among themselves. Run at least three.",
        "无法判断 {other} 与 {baseline} 孰快：仅有一轮（{metric} {change}），无法得知各轮之间的波动。请至少运行三轮。",
    ),
    "sentence.no_rounds": (
        "Cannot tell whether {other} or {baseline} is faster: there is no round that both sides finished.",
        "无法判断 {other} 与 {baseline} 孰快：没有双方都完成的轮次。",
    ),
    "sentence.nothing_committed": (
        "Cannot tell whether {other} or {baseline} is faster: in some round a side committed nothing.",
        "无法判断 {other} 与 {baseline} 孰快：某一轮中有一方没有提交任何事务。",
    ),
    "sentence.same_database": (
        "{other} and {baseline} are the same database with the same settings: the {change} in {metric} "
        "({confidence} interval {interval}) is the noise of this measurement.",
        "{other} 与 {baseline} 是同一个数据库且设置相同：{metric} 的差异 {change}"
        "（{confidence} 置信区间 {interval}）即为本次测量的噪声。",
    ),
    "sentence.arithmetic": (
        "Cannot tell whether {other} or {baseline} is faster: the figures cannot be compared.",
        "无法判断 {other} 与 {baseline} 孰快：数据无法比较。",
    ),
    "evidence.geometric": (
        "Geometric mean over {counts} connections",
        "对 {counts} 个连接取几何平均",
    ),
    "evidence.single": ("At {counts} connections", "连接数 {counts}"),
    "evidence.paired": ("{count} rounds, compared pair by pair", "{count} 轮，逐轮配对比较"),
    "evidence.paired#one": ("{count} round", "{count} 轮"),
    "evidence.unpaired": ("{count} rounds a side, run in blocks", "每方 {count} 轮，分块运行"),
    "evidence.unpaired#one": ("{count} round a side", "每方 {count} 轮"),
    "evidence.mixed": (
        "Each of these holds at {confidence} confidence, all taken jointly. Over all counts {change} ({interval})",
        "以上各项在 {confidence} 置信度下（所有连接数联合）成立；合计 {change}（{interval}）",
    ),
    "evidence.p95": (
        "Both were driven at the asked rate, so p95 of the response time is compared",
        "双方均按指定速率加压，因此比较响应时间的 p95",
    ),
    "evidence.open_at": (
        "Not established by itself at {counts} connections",
        "单看 {counts} 个连接时差异未能确认",
    ),
    "evidence.only_together": (
        "Established only over all connection counts together, not at any of them by itself",
        "仅在所有连接数合计时成立，单看任一连接数均未能确认",
    ),
    "evidence.faster_at": ("{other} is faster at {places}", "{other} 在 {places} 时更快"),
    "evidence.slower_at": ("{other} is slower at {places}", "{other} 在 {places} 时更慢"),
    "evidence.left_out": (
        "Left out for want of a result on both sides: {counts} connections",
        "因缺少双方结果而略去：{counts} 个连接",
    ),
    "short.faster": ("faster", "更快"),
    "short.slower": ("slower", "更慢"),
    "short.no_difference": ("within {limit}", "差异 ≤ {limit}"),
    "short.cannot_tell": ("cannot tell", "无法判断"),
    "alone.best": (
        "{target} is fastest at {place}: {tps} transactions per second, p95 latency {p95} ms.",
        "{target} 在 {place} 时最快：每秒 {tps} 个事务，p95 延迟 {p95} 毫秒。",
    ),
    "alone.single": (
        "{target} at {place}: {tps} transactions per second, p95 latency {p95} ms.",
        "{target}，{place}：每秒 {tps} 个事务，p95 延迟 {p95} 毫秒。",
    ),
    "alone.rounds": ("Mean of {count} rounds.", "{count} 轮的平均值。"),
    "alone.rounds#one": ("One round.", "仅一轮。"),
    "alone.nothing": ("{target} has no result.", "{target} 没有结果。"),
    "durable.yes": (
        "{target}: COMMIT waits for stable storage",
        "{target}：COMMIT 等待数据写入稳定存储",
    ),
    "durable.no": (
        "{target}: COMMIT does not wait for stable storage; a crash may lose committed transactions",
        "{target}：COMMIT 不等待数据写入稳定存储，崩溃可能丢失已提交的事务",
    ),
    "durable.unknown": (
        "{target}: it cannot be told whether COMMIT waits for stable storage",
        "{target}：无法得知 COMMIT 是否等待数据写入稳定存储",
    ),
    "notice.unfinished": (
        "This campaign is {state}: {done} of {all} trials have a result.",
        "本次测试活动状态为“{state}”：{all} 次试验中 {done} 次有结果。",
    ),
    "notice.bound": (
        "The client was, or may have been, the bottleneck at {places}: {reasons}. "
        "There the figures say at least as much about the client as about the database.",
        "在 {places} 时，压测端是（或可能是）瓶颈：{reasons}。这些数字反映的不仅是数据库，也是压测端。",
    ),
    "notice.bound_plain": (
        "The client was, or may have been, the bottleneck at {places}. "
        "There the figures say at least as much about the client as about the database.",
        "在 {places} 时，压测端是（或可能是）瓶颈。这些数字反映的不仅是数据库，也是压测端。",
    ),
    "notice.busy": (
        "The machine was busy before the first trial (load average {load} on {cores}): something else was running.",
        "首次试验之前机器已处于繁忙状态（{cores}，系统负载 {load}）：有其他任务在运行。",
    ),
    "notice.in_process": (
        "{target} shares the process with the load generator: their CPU cannot be told apart.",
        "{target} 与压测端共用进程：两者的 CPU 用量无法区分。",
    ),
    "notice.unequal_drives": (
        "The sides were driven differently: {engine} by the load engine, {others} through a Python driver, which"
        " costs the client several times as much for each statement.",
        "两侧的驱动方式不同：{engine} 由压测引擎驱动，{others} 通过 Python 驱动程序，"
        "后者每条语句的客户端开销高出数倍。",
    ),
    "notice.same_host": (
        "On the same machine as the load generator, sharing its CPU and disk: {targets}.",
        "与压测端位于同一台机器，共用 CPU 和磁盘：{targets}。",
    ),
    "notice.unequal_durability": (
        "The sides do not promise the same: COMMIT is durable on {durable}, not on {loose}.",
        "双方的承诺不同：{durable} 的 COMMIT 是持久的，{loose} 的不是。",
    ),
    "notice.unequal_isolation": (
        "The sides ran at their own default isolation: {levels}.",
        "双方使用各自默认的隔离级别：{levels}。",
    ),
    # Tables
    "caption.throughput": ("Transactions per second", "每秒事务数"),
    "caption.latency": ("Latency of committed transactions, ms", "已提交事务的延迟（毫秒）"),
    "caption.errors": ("Transactions by how they ended, all rounds together", "按结束方式统计的事务数，各轮合计"),
    "caption.generator": ("State of the load generator, rounds together", "压测端状况，各轮合计"),
    "caption.durability": ("What COMMIT means", "COMMIT 的含义"),
    "caption.differences": (
        "Settings that differ between {baseline} and {other}",
        "{baseline} 与 {other} 之间不同的设置",
    ),
    "caption.settings": ("Settings of {target}", "{target} 的设置"),
    "caption.server": ("Server of {target}", "{target} 的服务器"),
    "server.version_text": ("Version", "版本"),
    "caption.client": ("Client machine", "客户端机器"),
    "caption.servers": ("Targets", "被测目标"),
    "caption.campaign": ("Campaign", "测试活动"),
    "caption.workloads": ("Workloads", "工作负载"),
    "caption.plan": ("Plan", "测试计划"),
    "col.connections": ("Connections", "连接数"),
    "col.target": ("Target", "目标"),
    "col.workload": ("Workload", "工作负载"),
    "col.round": ("Round {number}", "第 {number} 轮"),
    "col.mean": ("Mean", "平均"),
    "col.sd": ("SD", "标准差"),
    "col.max": ("Max", "最大"),
    "col.change": ("Change", "变化"),
    "col.interval": ("95 % interval", "95 % 置信区间"),
    "col.answer": ("Answer", "结论"),
    "col.p95_range": ("p95 by round", "各轮 p95"),
    "col.service_p95": ("Service p95", "服务时间 p95"),
    "col.codes": ("Error codes", "错误码"),
    "col.cpu_per_query": ("CPU per query, µs", "每条语句 CPU（微秒）"),
    "col.cpu_share": ("CPU, of a core", "CPU（占单核）"),
    "col.lag": ("Lag p99, ms", "启动滞后 p99（毫秒）"),
    "col.bound": ("Bottleneck?", "是否瓶颈"),
    "col.drive": ("Drive and driver", "驱动方式与驱动程序"),
    "col.durable": ("COMMIT is durable", "COMMIT 持久"),
    "col.durability": ("Decided by", "决定因素"),
    "col.isolation": ("Isolation", "隔离级别"),
    "col.setting": ("Setting", "设置"),
    "col.value": ("Value", "值"),
    "col.version": ("Version", "版本"),
    "col.address": ("Address", "地址"),
    "col.place": ("Where", "位置"),
    "col.driver": ("Driver", "驱动程序"),
    "col.database_size": ("Database size", "数据库大小"),
    "col.name": ("Source", "来源"),
    "col.options": ("Options", "选项"),
    "col.program": ("SHA-256", "SHA-256"),
    "count.scheduled": ("Scheduled", "计划"),
    "count.committed": ("Committed", "提交"),
    "count.rolled_back": ("Rolled back", "回滚"),
    "count.failed": ("Failed", "失败"),
    "count.unknown": ("Unknown", "结果未知"),
    "count.skipped": ("Skipped", "跳过"),
    "count.unfinished": ("Unfinished", "未完成"),
    "count.retries": ("Retries", "重试"),
    "count.reconnects": ("Reconnects", "重连"),
    "count.outages": ("Outages", "中断"),
    "total.geometric": ("All", "合计"),
    "note.rate": (
        "Mean is the plain mean of the rounds; SD is their standard deviation in per cent of it",
        "平均为各轮的算术平均；标准差以占平均值的百分比表示",
    ),
    "note.total": ("All: geometric mean over the connection counts", "合计：对各连接数取几何平均"),
    "note.bound": (
        "{mark} The client was, or may have been, the bottleneck in this round",
        "{mark} 该轮中压测端是（或可能是）瓶颈",
    ),
    "note.open_loop": (
        "Driven at an asked rate: the change is that of p95 latency, where less is faster",
        "按指定速率加压：变化为 p95 延迟的变化，越小越快",
    ),
    "note.latency": (
        "From the intended start to the end; percentiles of all rounds together, from merged histograms. "
        "Service p95 counts from the actual start.",
        "从预定开始时刻到结束；百分位数由各轮直方图合并得出。服务时间 p95 从实际开始时刻计算。",
    ),
    "note.errors": (
        "Scheduled = committed + rolled back + failed + unknown + skipped + unfinished. "
        "Only committed transactions are in throughput and latency. "
        "Unknown: the connection was lost after COMMIT was sent. "
        "Error codes count every attempt that failed, also those that a retry made good.",
        "计划 = 提交 + 回滚 + 失败 + 结果未知 + 跳过 + 未完成。吞吐量和延迟只计已提交的事务。"
        "结果未知：COMMIT 发出后连接中断。错误码统计每次失败的尝试，包括重试后成功的。",
    ),
    "note.generator": (
        "CPU of the client process: per statement the mean, of a core the largest of the rounds. "
        "Lag: how late transactions began, 99th percentile.",
        "客户端进程的 CPU：每条语句为平均值，占单核为各轮最大值。滞后：事务开始的延迟，第 99 百分位。",
    ),
    "how.change": (
        "Change is the growth of the other target’s figure over the baseline’s; its interval holds the true change "
        "with 95 % confidence for each row by itself. Faster or slower means that the interval leaves out zero; "
        "“within” means that it includes zero and reaches no further than 10 %.",
        "变化为另一目标相对基线的增长；区间以 95 % 的置信度（逐行而言）包含真实变化。"
        "“更快”“更慢”表示区间不含零；“差异 ≤”表示区间含零且不超出 10 %。",
    ),
    "how.interleaved": (
        "Rounds were interleaved, so they are compared pair by pair: Student’s t on the logarithms of their ratios.",
        "各轮交错运行，因此逐轮配对比较：对比值的对数使用 t 分布。",
    ),
    "how.blocks": (
        "Rounds ran in blocks, so the sides are compared as two samples: Welch’s interval on logarithms. "
        "Drift between the blocks cannot be told from a difference.",
        "各轮分块运行，因此将双方作为两个样本比较：对数上的 Welch 区间。块之间的漂移无法与真实差异区分。",
    ),
    # Charts
    "chart.throughput": (
        "Throughput against connections: mean of rounds, bars from the lowest to the highest",
        "吞吐量随连接数的变化：各轮平均，竖线为最低到最高",
    ),
    "chart.latency": (
        "Latency against connections: p95 solid, p99 dashed; bars from the lowest to the highest round",
        "延迟随连接数的变化：p95 实线，p99 虚线；竖线为各轮最低到最高",
    ),
    "chart.course": (
        "Throughput, latency and errors of one or two trials by time",
        "一次或两次试验的吞吐量、延迟和错误随时间的变化",
    ),
    "chart.tps": ("transactions/s", "事务/秒"),
    "chart.ms": ("latency, ms", "延迟（毫秒）"),
    "chart.ms_log": ("latency, ms (logarithmic)", "延迟（毫秒，对数坐标）"),
    "chart.errors": ("errors/s", "错误/秒"),
    "chart.seconds": ("seconds since measuring began", "测量开始后的秒数"),
    "chart.connections": ("connections", "连接数"),
    "chart.connections_log": ("connections (logarithmic)", "连接数（对数坐标）"),
    "chart.warmup": ("warm-up", "预热"),
    "chart.outage": ("outage", "中断"),
    "chart.range": ("rounds", "各轮"),
    "course.first": ("Trial", "试验"),
    "course.second": ("Beside it", "对照"),
    "course.none": ("none", "无"),
    "course.nothing": ("No samples were recorded.", "没有记录到样本。"),
    # Errors, generator, configuration, environment
    "errors.none": (
        "No transaction failed, none was retried and no connection was lost.",
        "没有事务失败，没有重试，也没有连接中断。",
    ),
    "errors.none_lost": (
        "No transaction was lost: every one that met an error was retried or given up as asked.",
        "没有丢失事务：遇到错误的事务均已重试或按要求放弃。",
    ),
    "errors.lost": (
        "Transactions failed: {failed:,}. With unknown end: {unknown:,}. None of them is in a throughput.",
        "失败的事务：{failed:,}。结果未知：{unknown:,}。它们均不计入吞吐量。",
    ),
    "errors.zero": ("Zero everywhere: {names}.", "均为零：{names}。"),
    "errors.trial": ("{trial}: {reason}", "{trial}：{reason}"),
    "generator.free": (
        "The client was not the bottleneck in any round, as far as it can tell by itself.",
        "就压测端自身所能判断，它在任何一轮中都不是瓶颈。",
    ),
    "generator.bound": (
        "The client was, or may have been, the bottleneck in {bound} of {all} rounds.",
        "在 {all} 轮中的 {bound} 轮，压测端是（或可能是）瓶颈。",
    ),
    "bound.rounds": ("in {bound} of {all} rounds", "{all} 轮中的 {bound} 轮"),
    "configuration.nothing": ("No configuration was captured.", "未采集到配置。"),
    "configuration.families": (
        "{baseline} and {other} are of different families; their settings have no common names. All of them are below.",
        "{baseline} 与 {other} 属于不同的数据库系列，设置名称不通用。全部设置见下。",
    ),
    "configuration.same": (
        "All settings of {baseline} and {other} are the same.",
        "{baseline} 与 {other} 的所有设置均相同。",
    ),
    "configuration.changed": (
        "Settings of {target} that were not the same in all trials: {names}.",
        "{target} 在各次试验中不一致的设置：{names}。",
    ),
    "configuration.all": ("All {count} settings of {target}", "{target} 的全部 {count} 项设置"),
    "client.cpu_model": ("CPU", "CPU"),
    "client.cores": ("Cores", "核数"),
    "client.memory_bytes": ("Memory", "内存"),
    "client.kernel": ("Kernel", "内核"),
    "client.numa_nodes": ("NUMA nodes", "NUMA 节点"),
    "client.disk": ("Disk", "磁盘"),
    "client.load_average": ("Load average before trials", "试验前的系统负载"),
    "client.cores_physical": ("Physical cores", "物理核数"),
    "client.cores_usable": ("Usable cores", "可用核数"),
    "client.clock_source": ("Clock source", "时钟源"),
    "client.swap_bytes": ("Swap", "交换空间"),
    "client.machine": ("Architecture", "体系结构"),
    "client.limits": ("Limits", "资源限制"),
    "client.memory_available_bytes": ("Memory available", "可用内存"),
    "client.python": ("Python", "Python"),
    "client.dbdyno": ("dbdyno", "dbdyno"),
    "place.in_process": ("in the client’s process", "客户端进程内"),
    "place.same_host": ("same machine", "同一台机器"),
    "place.remote": ("other machine", "另一台机器"),
    "campaign.id": ("Campaign", "编号"),
    "campaign.state": ("State", "状态"),
    "campaign.trials": ("Trials", "试验次数"),
    "campaign.length": ("A trial lasts", "每次试验时长"),
    "campaign.warmup": ("Warm-up", "预热"),
    "campaign.interval": ("Sampled every", "采样间隔"),
    "campaign.order": ("Order", "顺序"),
    "campaign.loop": ("Load", "加压方式"),
    "campaign.seed": ("Seed", "随机种子"),
    "campaign.measured": ("Measured", "测量时间"),
    "campaign.version": ("dbdyno", "dbdyno"),
    "how_long.transactions": ("{count} transactions", "{count} 个事务"),
    "order.interleaved": ("rounds interleaved", "各轮交错"),
    "order.blocks": ("rounds in blocks", "各轮分块"),
    "loop.closed": ("closed loop", "闭环"),
    "loop.open": ("open loop, {rate} transactions/s, {arrivals} arrivals", "开环，每秒 {rate} 个事务，{arrivals}到达"),
    "arrivals.poisson": ("Poisson", "泊松"),
    "arrivals.even": ("even", "均匀"),
    "environment.plan": ("The plan as it was run", "所执行的测试计划"),
    "environment.source": ("Source of {workload}", "{workload} 的源代码"),
    "environment.notes": ("Notes: {notes}.", "备注：{notes}。"),
    "state.pending": ("pending", "未开始"),
    "state.running": ("running", "运行中"),
    "state.done": ("done", "已完成"),
    "state.failed": ("failed", "失败"),
    "state.interrupted": ("interrupted", "已中断"),
}

_JOINS = {"en": (", ", " and ", ". ", "."), "zh": ("、", " 和 ", "；", "。")}


class Words:
    """The table in one language."""

    def __init__(self, lang: str) -> None:
        """Raises UsageError for a language that the table does not have."""
        if lang not in LANGUAGES:
            raise UsageError(f"there are no reports in {lang!r}{nearest(lang, LANGUAGES)}")
        self.lang = lang
        self._index = LANGUAGES.index(lang)

    def __call__(self, key: str, **fields: object) -> str:
        """The text of a key with its fields filled in."""
        return TABLE[key][self._index].format(**fields)

    def count(self, key: str, count: int) -> str:
        """The text of a key for a number of things."""
        return self(f"{key}#one" if count == 1 and f"{key}#one" in TABLE else key, count=count)

    def listed(self, items: Sequence[str]) -> str:
        """``"1, 4 and 16"``."""
        comma, last, *_ = _JOINS[self.lang]
        return last.join([comma.join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)

    def sentences(self, parts: Sequence[str]) -> str:
        """Sentences without full stops, joined, with full stops."""
        *_, between, end = _JOINS[self.lang]
        return between.join(parts) + end if parts else ""

    def percent(self, share: float) -> str:
        """0.95 → ``"95 %"``."""
        return f"{share * 100:g}\N{NO-BREAK SPACE}%"
