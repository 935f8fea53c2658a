-- models/schema.py fills in the columns of table visit: {columns} lists them, {unpacked} selects them from a pack, and
-- {unnested} unnests the arrays of a pack.

CREATE FUNCTION visit_bucket(page bytea, bits int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ((get_byte(page, 0) << 8) | get_byte(page, 1)) >> (16 - bits) $$;

CREATE FUNCTION old_visits_of(domain bigint, page bytea) RETURNS SETOF visit LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT v.* FROM (
    SELECT {unpacked}
      FROM generate_series(0, 16, 2) b
      JOIN visit_pack p ON p.domain_id = old_visits_of.domain AND p.bits = b
                       AND p.bucket = visit_bucket(old_visits_of.page, b)
     CROSS JOIN LATERAL {unnested}) v
 WHERE v.key = old_visits_of.page
$$;

CREATE FUNCTION old_visits_of(domain bigint, page bytea) RETURNS TABLE (at timestamptz, change text)
LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT x.at, x.change
  FROM generate_series(0, 16, 2) b
  JOIN visit_pack p ON p.domain_id = old_visits_of.domain AND p.bits = b
                   AND p.bucket = visit_bucket(old_visits_of.page, b)
 CROSS JOIN LATERAL unnest(p.at, p.change) WITH ORDINALITY AS x(at, change, place)
 WHERE substring(p.keys FROM (16 * x.place - 15)::int FOR 16) = old_visits_of.page
$$;

CREATE FUNCTION visit_status(domain bigint, page bytea, instant timestamptz) RETURNS smallint
LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT coalesce(
    (SELECT v.status FROM visit v
      WHERE v.domain_id = visit_status.domain AND v.key = visit_status.page AND v.at = visit_status.instant),
    (SELECT p.status[x.place]
       FROM generate_series(0, 16, 2) b
       JOIN visit_pack p ON p.domain_id = visit_status.domain AND p.bits = b
                        AND p.bucket = visit_bucket(visit_status.page, b)
                        AND visit_status.instant BETWEEN p.since AND p.until
      CROSS JOIN LATERAL unnest(p.at) WITH ORDINALITY AS x(at, place)
      WHERE x.at = visit_status.instant
        AND substring(p.keys FROM (16 * x.place - 15)::int FOR 16) = visit_status.page
      LIMIT 1))
$$;

CREATE FUNCTION visits_of(domain bigint, page bytea) RETURNS SETOF visit LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT {columns} FROM visit v WHERE v.domain_id = visits_of.domain AND v.key = visits_of.page
 UNION ALL
SELECT {columns} FROM old_visits_of(visits_of.domain, visits_of.page)
$$;

CREATE FUNCTION visits_between(domain bigint, first timestamptz, last timestamptz)
RETURNS SETOF visit LANGUAGE sql STABLE PARALLEL SAFE AS
$$
SELECT {columns} FROM visit v WHERE v.domain_id = visits_between.domain AND v.at BETWEEN first AND last
 UNION ALL
SELECT v.* FROM (SELECT {unpacked}
                   FROM visit_pack p
                  CROSS JOIN LATERAL {unnested}
                  WHERE p.domain_id = visits_between.domain AND p.until >= first AND p.since <= last) v
 WHERE v.at BETWEEN first AND last
$$;

CREATE VIEW every_visit AS
SELECT {columns} FROM visit
 UNION ALL
SELECT {unpacked}
  FROM visit_pack p
 CROSS JOIN LATERAL {unnested};
COMMENT ON VIEW every_visit IS 'All visits that are kept, from tables visit and visit_pack.';
