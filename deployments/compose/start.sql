-- Run once by the image of Postgres, with psql, while its volume is empty. Services are no superusers: whoever has taken
-- one over can write what is crawled, and starts no program beside Postgres. CREATEROLE is for `recrawl db grant`.
\set password `cat /run/secrets/database_password`
CREATE ROLE recrawl LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE crawl OWNER recrawl;
CREATE DATABASE prefect OWNER recrawl;
-- The superuser is for whoever stands in this container: docker compose exec postgres psql --username postgres
ALTER ROLE postgres PASSWORD NULL;
