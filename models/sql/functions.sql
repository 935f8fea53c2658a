CREATE FUNCTION page_importance(
    history DOUBLE PRECISION, cash DOUBLE PRECISION, circulating DOUBLE PRECISION,
    clock_last DOUBLE PRECISION, clock_now DOUBLE PRECISION, pages DOUBLE PRECISION, passes DOUBLE PRECISION)
RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN cash IS NULL THEN NULL
        WHEN least(passes * circulating, clock_now) <= 0 THEN 1
        WHEN clock_now <= passes * circulating THEN greatest(pages * (history + cash) / clock_now, 0)
        WHEN clock_now - clock_last >= passes * circulating THEN pages * cash / (clock_now - clock_last)
        ELSE greatest(pages / (passes * circulating)
             * (cash
                + CASE WHEN abs(history) > 1e-3  -- units of cash; less could underflow
                       THEN history * (passes * circulating - greatest(clock_now - clock_last, 0))
                            / least(passes * circulating, clock_last)
                       ELSE 0 END), 0)
    END
$$;
COMMENT ON FUNCTION page_importance IS
    'Return the importance of a page relative to the mean page of its domain: by the cash received within the window.
history, clock_last: columns history and clock of table cash. cash: net plus the dividend of its pool. circulating:
all cash of domain_state minus dormant. clock_now: column clock of domain_state. pages: the sum of pages over the pools.
passes: column window_passes of domain_state.';

CREATE FUNCTION visit_importance(importance float8, is_new bool, announces float8, first_visits float8, novelty float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- Each argument that is expensive is used once: only then does Postgres inline it.
    SELECT importance * CASE WHEN is_new THEN novelty + 1 ELSE 1 END / CASE WHEN is_new THEN first_visits + 1 ELSE 1 END
         + CASE WHEN is_new THEN 0 ELSE announces END
$$;
COMMENT ON FUNCTION visit_importance IS
    'Return the importance of a visit to a page: the importance of the page plus the new pages that it announces.
For an unfetched page: its importance times the mean share of new text in first visits of its group; the mean includes
one assumed visit with only new text. announces: column of page. first_visits, novelty: columns of prior.';

CREATE FUNCTION page_freshness(
    a DOUBLE PRECISION, b DOUBLE PRECISION, unseen INTERVAL, calibration DOUBLE PRECISION)
RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- Each argument is used once: only then does Postgres inline it. Beyond 700, exp would underflow.
    SELECT 1 - calibration * (1 - exp(greatest(
        -a * ln(1 + greatest(extract(epoch FROM unseen)::float8, 0) / 86400 / b), -700)))
$$;
COMMENT ON FUNCTION page_freshness IS
    'Return the probability that a page has not changed since it was last seen: 1 - calibration * (1 - (b / (b + days))^a).
unseen: that time. a, b: the Gamma posterior of its change rate, b in days: prior.a + page.rate_a,
prior.b + page.rate_b. calibration: the changes that visits found, relative to those predicted, at most 1.';

CREATE FUNCTION activity_ahead(at timestamptz[], ahead float8[], since timestamptz)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- Without a sub-select: only then does Postgres inline it. The number of the day is width_bucket(since, at).
    SELECT CASE WHEN since IS NULL OR cardinality(at) = 0 OR since >= at[cardinality(at)] THEN 0
                WHEN since <= at[1] THEN ahead[cardinality(at)] - ahead[1]
                ELSE ahead[cardinality(at)] - ahead[width_bucket(since, at)]
                     - (ahead[width_bucket(since, at) + 1] - ahead[width_bucket(since, at)])
                     * date_part('epoch', since - at[width_bucket(since, at)])
                     / date_part('epoch', at[width_bucket(since, at) + 1] - at[width_bucket(since, at)]) END
$$;
COMMENT ON FUNCTION activity_ahead IS
    'Return by how many days the site activity has run ahead of the calendar since a time; negative if it lags behind.
at, ahead: columns activity_at and activity_ahead of domain_state.';

CREATE FUNCTION activity_gap(now timestamptz, at timestamptz[], ahead float8[], since timestamptz)
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN cardinality(at) = 0 THEN now - since
                ELSE greatest(make_interval(secs => date_part('epoch', now - since)
                                                    + 86400 * activity_ahead(at, ahead, since)), interval '0') END
$$;
COMMENT ON FUNCTION activity_gap IS
    'Return by how much pages have aged since an instant: the elapsed time plus the lead of the site activity.
at, ahead: see activity_ahead.';

CREATE FUNCTION signal_gap(
    unseen interval, signals bytea, recall float8[], noise float8[], effective_recall float8, a float8, b float8)
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN effective_recall IS NULL THEN unseen ELSE (
        SELECT make_interval(secs => least(
            86400 * b * ((b + x.days) / x.silent_b * exp(least(30, coalesce(
                (SELECT max(get_byte(signals, n) * ln(1 + recall[n + 1] / noise[n + 1] * a / x.silent_b))
                   FROM generate_series(0, least(octet_length(signals), cardinality(recall)) - 1) n), 0) / a)) - 1),
            1e12))
          FROM (SELECT y.days, b + effective_recall * y.days AS silent_b
                  FROM (SELECT greatest(date_part('epoch', unseen), 0) / 86400 AS days) y) x) END
$$;
COMMENT ON FUNCTION signal_gap IS
    'Return the time after which the page would be equally likely to have changed if there were no signal sources.
unseen: time since its last successful visit. signals: column of page. recall, noise: columns of domain_source, ordered
by no. effective_recall: the maximum over the sources of the domain, null without one. a, b: change-rate estimate, b in days.';

CREATE FUNCTION signals_with(signals bytea, no int) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT set_byte(x.wide, no, least(get_byte(x.wide, no) + 1, 255))
      FROM (SELECT signals || decode(repeat('00', greatest(no + 1 - octet_length(signals), 0)), 'hex') AS wide) x
$$;
COMMENT ON FUNCTION signals_with IS
    'Return page.signals with one more signal of source number no. The count of each source stops at 255.';

CREATE FUNCTION fingerprint_band(fingerprint BIGINT, quarter INTEGER)
RETURNS INTEGER LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT quarter * 65536 + ((fingerprint >> (48 - 16 * quarter)) & 65535)::int
$$;
COMMENT ON FUNCTION fingerprint_band IS
    'Return one of the four bands of a fingerprint, the keys of table fingerprint_band. quarter: 0 to 3.';

CREATE FUNCTION distance_bits(one BIGINT, other BIGINT)
RETURNS INTEGER LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT bit_count(int8send(one # other))::int
$$;
COMMENT ON FUNCTION distance_bits IS
    'Return the Hamming distance of two 64-bit fingerprints: 0 for equal main texts, about 32 for unrelated ones.';

CREATE FUNCTION version_content(text text, content text, content_ranges int[]) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
SELECT CASE WHEN content IS NOT NULL OR content_ranges = '{}' THEN coalesce(content, text)
            ELSE (SELECT convert_from(string_agg(substring(x.bytes FROM content_ranges[n] + 1
                                                           FOR content_ranges[n + 1] - content_ranges[n]),
                                                 ''::bytea ORDER BY n), 'UTF8')
                    FROM (SELECT convert_to(text, 'UTF8') AS bytes OFFSET 0) x,
                         generate_series(1, cardinality(content_ranges), 2) n) END $$;
COMMENT ON FUNCTION version_content IS
    'Return what a reader would call the page. text, content, content_ranges: columns of snapshot.';

CREATE FUNCTION page_category(state text, version int, list_kind text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE WHEN list_kind = '' AND version = 0 THEN 'unread_list'
            WHEN state = 'gone' AND version = 0 THEN 'dead_link'
            ELSE state END $$;
COMMENT ON FUNCTION page_category IS
    'Return how all reports count a page: by its state, except unread_list for the URL of a sitemap or feed that was
never read, and dead_link for a URL that does not exist and never was a page.';
