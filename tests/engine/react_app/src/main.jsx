import { lazy, StrictMode, Suspense, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Link, Route, Routes, useParams } from "react-router-dom";

const About = lazy(() => import("./About.jsx"));

function useData(path) {
  const [data, setData] = useState(null);
  useEffect(() => {
    setData(null);
    fetch(path).then((response) => response.json()).then(setData);
  }, [path]);
  return data;
}

function Home() {
  return <p>Welcome to a shop that sells minerals by mail, since the year of the great flood.</p>;
}

function Products() {
  const products = useData("/api/products.json");
  if (!products) return <p>Loading...</p>;
  return <ul>{products.map(({ id, name }) => <li key={id}><Link to={`/products/${id}`}>{name}</Link></li>)}</ul>;
}

function Product() {
  const { id } = useParams();
  const product = useData(`/api/products/${id}.json`);
  if (!product) return <p>Loading...</p>;
  return <article><h1>{product.name}</h1><p>{product.text}</p></article>;
}

function App() {
  return (
    <BrowserRouter>
      <nav><Link to="/">Home</Link> <Link to="/products">Products</Link> <Link to="/about">About</Link></nav>
      <main>
        <Suspense fallback={<p>Loading...</p>}>
          <Routes>
            <Route path="/" element={<Home />} />
            <Route path="/products" element={<Products />} />
            <Route path="/products/:id" element={<Product />} />
            <Route path="/about" element={<About />} />
          </Routes>
        </Suspense>
      </main>
    </BrowserRouter>
  );
}

createRoot(document.getElementById("root")).render(<StrictMode><App /></StrictMode>);
