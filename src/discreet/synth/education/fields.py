"""What can be studied: degree levels, and some sixty CIP codes with who teaches them and how they pay.

The codes are real (Classification of Instructional Programs); labels are ours, pay and popularity invented.
"""

from __future__ import annotations

from typing import NamedTuple


class Level(NamedTuple):
    """A degree level: LEHD code, label, shift of log earnings, popularity."""

    code: str
    label: str
    shift: float
    weight: float


class Field(NamedTuple):
    """A 6-digit field: CIP code, label, shift of log earnings, popularity, degree levels it is taught at."""

    cip6: str
    label: str
    shift: float
    weight: float
    levels: tuple[str, ...]

    @property
    def cip4(self) -> str:
        """The 4-digit series the code belongs to, "11.07"."""
        return self.cip6[:5]

    @property
    def cip2(self) -> str:
        """The 2-digit family the code belongs to, "11"."""
        return self.cip6[:2]


LEVELS = (
    Level("01", "Certificate, under 1 year", -0.45, 0.35),
    Level("02", "Certificate, 1-2 years", -0.35, 0.30),
    Level("03", "Associate", -0.25, 1.00),
    Level("04", "Certificate, 2-4 years", -0.20, 0.05),
    Level("05", "Bachelor", 0.00, 3.00),
    Level("06", "Post-bachelor certificate", 0.05, 0.10),
    Level("07", "Master", 0.20, 1.00),
    Level("08", "Post-master certificate", 0.25, 0.05),
    Level("17", "Doctor, research", 0.35, 0.10),
    Level("18", "Doctor, professional practice", 0.50, 0.30),
)

TRADE = ("01", "02", "03", "04")
SHORT = ("01", "02", "03")
APPLIED = ("01", "02", "03", "05", "06", "07")
TWO_AND_FOUR = ("03", "05")
SCIENCE = ("05", "06", "07", "17")
GRADUATE = ("06", "07", "08", "17")
PRACTICE = ("18",)

FIELDS = (
    Field("01.0101", "Agricultural business", -0.05, 0.5, TWO_AND_FOUR),
    Field("01.0901", "Animal science", -0.10, 0.4, SCIENCE),
    Field("03.0103", "Environmental studies", -0.12, 0.5, SCIENCE),
    Field("03.0104", "Environmental science", -0.08, 0.5, SCIENCE),
    Field("04.0201", "Architecture", 0.10, 0.3, ("05", "07")),
    Field("09.0101", "Speech communication", -0.10, 1.2, TWO_AND_FOUR),
    Field("09.0401", "Journalism", -0.15, 0.5, ("05", "07")),
    Field("11.0101", "Computer and information sciences", 0.30, 1.0, APPLIED),
    Field("11.0103", "Information technology", 0.22, 0.8, APPLIED),
    Field("11.0701", "Computer science", 0.38, 1.5, SCIENCE),
    Field("11.1003", "Information systems security", 0.28, 0.5, APPLIED),
    Field("12.0401", "Cosmetology", -0.45, 0.6, SHORT),
    Field("12.0503", "Culinary arts", -0.35, 0.5, SHORT),
    Field("13.0401", "Educational leadership", 0.05, 0.8, GRADUATE),
    Field("13.1001", "Special education", -0.12, 0.5, SCIENCE),
    Field("13.1202", "Elementary education", -0.18, 1.4, ("05", "07")),
    Field("13.1205", "Secondary education", -0.15, 0.7, ("05", "06", "07")),
    Field("14.0701", "Chemical engineering", 0.40, 0.3, SCIENCE),
    Field("14.0801", "Civil engineering", 0.30, 0.5, SCIENCE),
    Field("14.0901", "Computer engineering", 0.42, 0.4, SCIENCE),
    Field("14.1001", "Electrical engineering", 0.38, 0.6, SCIENCE),
    Field("14.1901", "Mechanical engineering", 0.34, 0.9, SCIENCE),
    Field("15.0303", "Electrical engineering technology", 0.12, 0.4, TRADE),
    Field("16.0905", "Spanish", -0.15, 0.4, ("05", "07")),
    Field("19.0706", "Child development", -0.35, 0.5, ("01", "02", "03", "05")),
    Field("22.0101", "Law", 0.10, 1.0, PRACTICE),
    Field("22.0302", "Legal assistant", -0.10, 0.4, ("02", "03", "05")),
    Field("23.0101", "English", -0.18, 0.9, SCIENCE),
    Field("24.0101", "Liberal arts and sciences", -0.12, 2.4, TWO_AND_FOUR),
    Field("24.0102", "General studies", -0.15, 1.2, TWO_AND_FOUR),
    Field("26.0101", "Biology", -0.08, 1.6, SCIENCE),
    Field("26.0202", "Biochemistry", 0.00, 0.4, SCIENCE),
    Field("27.0101", "Mathematics", 0.12, 0.6, SCIENCE),
    Field("27.0501", "Statistics", 0.25, 0.2, SCIENCE),
    Field("30.7001", "Data science", 0.35, 0.2, ("05", "06", "07")),
    Field("40.0501", "Chemistry", 0.02, 0.5, SCIENCE),
    Field("40.0801", "Physics", 0.12, 0.3, SCIENCE),
    Field("42.0101", "Psychology", -0.20, 2.0, SCIENCE),
    Field("42.2803", "Counselling psychology", -0.20, 0.4, ("07", "08", "17")),
    Field("43.0103", "Law enforcement administration", -0.05, 0.6, TWO_AND_FOUR),
    Field("43.0104", "Criminal justice", -0.12, 1.1, TWO_AND_FOUR),
    Field("43.0203", "Fire science", 0.05, 0.4, SHORT),
    Field("44.0701", "Social work", -0.25, 0.8, SCIENCE),
    Field("45.0601", "Economics", 0.20, 0.8, SCIENCE),
    Field("45.1001", "Political science", -0.02, 0.9, SCIENCE),
    Field("45.1101", "Sociology", -0.18, 0.7, SCIENCE),
    Field("46.0302", "Electrician", 0.15, 0.5, TRADE),
    Field("47.0201", "Heating and cooling technology", 0.05, 0.5, TRADE),
    Field("47.0604", "Automotive mechanics", -0.02, 0.7, TRADE),
    Field("48.0508", "Welding", 0.05, 0.7, TRADE),
    Field("50.0409", "Graphic design", -0.20, 0.5, TWO_AND_FOUR),
    Field("50.0702", "Fine arts", -0.35, 0.5, ("03", "05", "07")),
    Field("50.0901", "Music", -0.30, 0.4, ("05", "07", "17")),
    Field("51.0701", "Health care administration", 0.10, 0.6, APPLIED),
    Field("51.0801", "Medical assistant", -0.25, 1.0, SHORT),
    Field("51.0904", "Paramedic", -0.02, 0.5, SHORT),
    Field("51.1201", "Medicine", 0.75, 0.5, PRACTICE),
    Field("51.2001", "Pharmacy", 0.50, 0.4, PRACTICE),
    Field("51.3801", "Registered nursing", 0.22, 2.2, ("03", "05", "07")),
    Field("51.3805", "Family nurse practice", 0.35, 0.4, ("07", "08", "18")),
    Field("51.3901", "Practical nursing", 0.00, 0.9, ("01", "02", "04")),
    Field("52.0201", "Business administration", 0.05, 3.2, APPLIED),
    Field("52.0301", "Accounting", 0.12, 1.3, ("03", "05", "06", "07")),
    Field("52.0302", "Bookkeeping", -0.12, 0.5, SHORT),
    Field("52.0801", "Finance", 0.20, 0.9, ("05", "07", "17")),
    Field("52.1401", "Marketing", 0.05, 0.9, ("03", "05", "07")),
    Field("54.0101", "History", -0.12, 0.6, SCIENCE),
)

FAMILIES = tuple(sorted({field.cip2 for field in FIELDS}))
