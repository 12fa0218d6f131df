"""Building the document: all sections in the order in which they are asked for."""

from __future__ import annotations

from dbdyno.report.document import Document
from dbdyno.report.material import Material
from dbdyno.report.sections import (
    answer,
    configuration,
    connections,
    course,
    environment,
    errors,
    generator,
    throughput,
)

SECTIONS = (answer, throughput, connections, course, errors, generator, configuration, environment)


def build_document(material: Material) -> Document:
    """The whole report as data."""
    words, campaign = material.words, material.campaign
    subtitle = words(
        "page.subtitle",
        targets=words.listed(material.targets),
        workloads=words.listed(material.workloads),
        connections=words.listed([str(count) for count in material.connections]),
        rounds=words.count("rounds", campaign.plan.rounds),
        date=f"{campaign.created:%Y-%m-%d %H:%M}",
    )
    return Document(
        lang=words.lang,
        title=campaign.name,
        subtitle=subtitle,
        sections=tuple(module.section(material) for module in SECTIONS),
        footer=words("page.footer", version=campaign.version, campaign=campaign.id),
    )
