-- Run once by the image of Postgres, when its volume is empty: the Prefect server has a database of its own.
CREATE DATABASE prefect;
