"""Before a run: what would spoil it, on this machine and on the server (``dbdyno doctor``, and notes of a campaign)."""

from dbdyno.campaign.doctor.examination import Examination, examine, spoilers

__all__ = ["Examination", "examine", "spoilers"]
