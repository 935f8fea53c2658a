"""The tables. No behavior; importing this package gives the whole metadata."""

from sqlmodel import SQLModel

from models import change, domain, page, subscription, visit

metadata = SQLModel.metadata
